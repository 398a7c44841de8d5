//! Scattering and gathering, by every instruction set.

use super::*;

fn hash(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Checks the keys of one partition of a piece, answers them, and checks where the answers arrive.
fn check(machine: Instructions, partitioned: &mut Partitioned, piece: &[u64], partition: &RangeInclusive<u64>) {
    let len = piece.len();
    let own: Vec<usize> = (0..len).filter(|&i| partition.contains(&piece[i])).collect();
    partitioned.process(|keys, answers| {
        let hashes: Vec<u64> = own.iter().map(|&i| piece[i]).collect();
        assert_eq!((keys.hashes, keys.len), (&hashes[..], len), "{machine:?}");
        let selection = keys.selection.unwrap();
        for range in [0..0, 0..len, len / 3..len / 2, len..len] {
            let within = own.iter().filter(|place| range.contains(place)).count();
            assert_eq!(selection.within(range).len(), within);
        }
        answers.iter_mut().zip(&own).for_each(|(answer, place)| *answer = place % 3 == 1);
    });
    // The answers of other partitions stay as they are.
    let mut answers: Vec<bool> = (0..len).map(|i| i % 5 < 2).collect();
    machine.run(Gather { partitioned, answers: &mut answers });
    let expected = |i| if partition.contains(&piece[i]) { i % 3 == 1 } else { i % 5 < 2 };
    assert!((0..len).all(|i| answers[i] == expected(i)), "{machine:?}");
}

#[test]
fn keys_are_scattered_in_order_and_answers_return_to_their_places() {
    let mut pair = [Partitioned::with_partitions(5).unwrap(), Partitioned::with_partitions(5).unwrap()];
    for len in [0, 1, 7, 8, 9, 63, 64, PIECE - 1, PIECE] {
        let piece: Vec<u64> = (0..len).map(hash).collect();
        let third = u64::MAX / 3;
        for partitions in [[0..=third, third + 1..=u64::MAX], [0..=u64::MAX, 5..=5]] {
            for machine in Instructions::available() {
                pair.iter_mut().for_each(Partitioned::clear);
                machine.run(Scatter { hashes: &piece, to: &mut pair, partitions: &partitions });
                pair.iter_mut().zip(&partitions).for_each(|(to, partition)| check(machine, to, &piece, partition));
            }
        }
    }
}

#[test]
fn a_piece_may_be_scattered_in_blocks_to_any_number_of_partitions() {
    for count in 1..=5 {
        let mut all: Vec<_> = (0..count).map(|_| Partitioned::with_partitions(count).unwrap()).collect();
        let least = |partition: usize| (partition as u128 * (1 << 64)) / count as u128;
        let partitions: Vec<_> = (0..count).map(|i| least(i) as u64..=(least(i + 1) - 1) as u64).collect();
        for (piece, block) in [(PIECE, WORD), (PIECE - 1, BLOCK), (BLOCK / 2 + 1, BLOCK)] {
            let piece: Vec<u64> = (0..piece).map(hash).collect();
            all.iter_mut().for_each(Partitioned::clear);
            piece.chunks(block).for_each(|hashes| Partitioned::scatter(&mut all, hashes, &partitions));
            for (to, partition) in all.iter_mut().zip(&partitions) {
                check(Instructions::best(), to, &piece, partition);
            }
        }
    }
}

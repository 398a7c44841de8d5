//! Calls fed with any bytes: by the tests with a few, by `fuzz/` with as many as there is time for.

pub mod learned;
pub mod operations;
pub mod saved;

#[cfg(test)]
mod tests;

/// splitmix64's last step.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

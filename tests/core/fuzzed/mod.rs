//! Calls fed with any bytes: a few by the tests, as many as there is time for by `fuzz/`.

pub mod operations;
pub mod public_api;
pub mod saved;

#[cfg(test)]
mod tests;

/// Returns the last step of splitmix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

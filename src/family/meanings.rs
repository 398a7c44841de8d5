//! What the parameters of the families mean, for the documentation and for errors.

/// Returns what a parameter of a family means.
pub fn meaning(family: &str, parameter: &str) -> &'static str {
    match (family, parameter) {
        ("age-partitioned", "k") => "consecutive slices that must match, in lines at most 4",
        ("age-partitioned" | "time-limited", "l") => "full generations that are retained; k + l is at most 128",
        ("age-partitioned", "slice_bits") => "bits of each slice",
        ("age-partitioned" | "guarded-epoch", "blocks") => "blocks of each slice or segment",
        ("time-limited", "k") => "consecutive slices that must match",
        ("time-limited", "slice_bits") => "bits of each of the first k slices, a multiple of 64, at least 512",
        (_, "block_bits") => "bits of a block, 64 or 512",
        (_, "parts") => "bits that a key sets in a block, each in its own part: 1, 2, 4 or 8",
        ("guarded-epoch", "r") => "full epochs that are retained, in lines 7, 15 or 31, by positions also 63",
        ("guarded-epoch", "k") => "bits that a key sets in a segment, each in its own part: 1 to 64",
        (_, "segment_bits") => "bits of each segment",
        (_, "positions") => "positions, of r + 1 bits that lie side by side",
        ("aged-cuckoo", "fingerprint_bits") => "bits of a fingerprint: 10, 13, 16, 20, 25, 28, 32 or 37",
        ("aged-cuckoo", "epochs") => "full epochs that are retained, 1 to 200",
        ("aged-cuckoo", "pages") => "pages, which are swept in turn",
        ("aged-cuckoo", "lines") => "cache lines of a page, an even number, 2 to 2,048",
        (_, "chain") => {
            "1 if more tables follow when the first is full, for a window of time; 2 if that is also planned for a guess"
        }
        (_, "pages") => "pages of 4 KiB",
        (_, "lines") => "cache lines of a page that contain bits of a key",
        ("timing", "k") => "timers that a key sets, each in its own slice: 1 to 64",
        (_, "bpt") => "bits of a timer, 2 to 32",
        ("timing", "blocks") => "full blocks that are retained, at most 2**bpt - 2; window - 1 make the window exact",
        (_, "slice_timers") => "timers of each slice, rounded up to whole words",
        (_, "equal_timers") => "timers that must be equal for a key to be reported; 2 or more end the promise",
        (_, "part_keys") => "keys after which another part is opened",
        (_, "part_timers") => "set timers after which another part is opened",
        (_, "distinct") => "different keys of a window of insertions",
        ("fingerprint-buffer", "fingerprint_bits") => "bits of a fingerprint, 1 to 64",
        (_, "slots") => "slots of the table, a multiple of 64, more than the window",
        (_, "remainder_bits") => "bits of a fingerprint that a slot stores",
        ("counting" | "stable", "k") => "slices, and cells of a key, at most 128",
        (_, "slice_cells") => "cells of each slice",
        ("stable", "bits") => "bits of a cell: 1, 2, 4 or 8",
        (_, "decrements") => "cells of each slice that an insertion decrements",
        ("generalized", "bits") => "cells, of one bit each",
        (_, "k1") => "hashes that set a bit, at most 64",
        (_, "k0") => "hashes that reset a bit, at most 64",
        ("bloom", "k") => "bits of a key, at most 128",
        ("bloom", "bits") => "bits of the array, in which the bits of a key lie anywhere",
        ("bloom", "slice_bits") => "bits of each of k slices, in place of the array",
        (_, "missing_differ") => "1 if each missing key is a key of its own",
        _ => "",
    }
}

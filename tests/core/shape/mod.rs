//! Formulas, compared with enumeration and simulation; and the choices of shapes.

mod age_partitioned;
mod age_partitioned_choice;
mod bloom;
mod counting;
mod equal_timers;
mod errors;
mod fill;
mod fingerprint_buffer;
mod generalized;
mod growing;
mod guarded_epoch;
mod guarded_epoch_choice;
mod line;
mod line_choice;
mod runs;
mod slices;
mod slicing;
mod stable;
mod swamp;
mod table;
mod time_limited;
mod timing;

//! Formulas, compared with enumeration and simulation; and the choices of shapes.

mod age_partitioned;
mod bloom;
mod counting;
mod equal_timers;
mod errors;
mod fill;
mod generalized;
mod growing;
mod guarded_epoch;
mod line;
mod runs;
mod slices;
mod slicing;
mod stable;
mod swamp;
mod table;
mod time_limited;
mod timing;

//! Formulas, held against enumeration and simulation; and the shapes that are chosen.

mod table;

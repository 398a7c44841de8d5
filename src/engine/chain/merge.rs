//! The merge of two chains: both are brought to one generation, and the tables of one join those of the other.

use std::any::Any;

use super::Chain;
use crate::Error;
use crate::engine::{Aged, Engine, not_mergeable};
use crate::family::Layout;
use crate::family::growth::{Growth, Table};

/// Merges another chain, or the single table of an engine of the same cells, into a chain. A call that returns an error
/// has changed nothing.
pub fn merge<G: Growth>(chain: &mut Chain<G>, other: &dyn Engine) -> Result<(), Error> {
    if let Some(reason) = G::NOT_MERGEABLE {
        return Err(not_mergeable(reason));
    }
    let other: &dyn Any = other;
    let mut theirs = match (other.downcast_ref::<Chain<G>>(), other.downcast_ref::<Aged<G::Cells>>()) {
        (Some(other), _) => other.clone(),
        (_, Some(&Aged { layout, ref words, ref clock })) => {
            let tables = vec![Table { layout, words: words.clone(), last: G::moment(clock), load: 0 }];
            Chain { tables, clock: clock.clone(), unswept: 0, expired: Vec::new(), ..chain.clone() }
        }
        _ => return Err(not_mergeable("one grows with the number of keys and the other does not")),
    };
    if theirs.clock.inserted() == 0 {
        return Ok(());
    }
    if chain.clock.inserted() == 0 {
        theirs.set_max_ahead(chain.clock.max_ahead());
        *chain = theirs;
        return Ok(());
    }
    let mut ours = chain.clone();
    let (clock, ours_opened, theirs_opened) = ours.clock.merged(&theirs.clock, true)?;
    for (side, opened) in [(&mut ours, ours_opened), (&mut theirs, theirs_opened)] {
        if opened > 0 {
            side.age(&clock, opened)?;
        }
        if clock.counts() {
            side.realign(clock.generation())?;
        }
        side.clock = clock.clone();
    }
    let (rotation, generations) = (ours.rotation(), ours.layout().generations());
    // Other tables than our newest may not have been swept, and take no keys.
    let Some(mut newest) = ours.tables.pop() else { return Ok(()) };
    for table in theirs.tables {
        let live = clock.generation().abs_diff(G::generation(&clock, table.last)) < generations;
        if live && !G::merge(&mut newest, &table, rotation)? {
            newest.last = newest.last.max(table.last);
            let older = ours.tables.partition_point(|ours| ours.last <= table.last);
            ours.tables.insert(older, table);
        }
    }
    debug_assert!(ours.tables.is_sorted_by_key(|table| table.last), "the oldest table comes first");
    ours.tables.push(newest);
    *chain = ours;
    Ok(())
}

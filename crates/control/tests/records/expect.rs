//! Preconditions of edits, and the errors when they do not hold.

use tollgate_control::{Edit, Error, Precondition};

use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, change_set, client_draft, override_draft, per_second, rule};

/// The outcome of an edit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Done {
    Changed,
    Nothing,
    Conflict,
    NotFound,
    Stale(Option<i64>),
}

/// Precondition, then the outcomes of writing and of deleting a record at version 2, and of both for a missing record.
const MATRIX: [(Precondition, [Done; 4]); 5] = [
    (Precondition::Anything, [Done::Changed, Done::Changed, Done::Changed, Done::Nothing]),
    (Precondition::Absent, [Done::Conflict, Done::Conflict, Done::Changed, Done::Nothing]),
    (Precondition::Present, [Done::Changed, Done::Changed, Done::NotFound, Done::NotFound]),
    (Precondition::Version(2), [Done::Changed, Done::Changed, Done::Stale(None), Done::Stale(None)]),
    (Precondition::Version(1), [Done::Stale(Some(2)), Done::Stale(Some(2)), Done::Stale(None), Done::Stale(None)]),
];

/// An edit of a rule, an override or a client that writes different content, or deletes.
fn edit(kind: usize, id: &str, write: bool, expect: Precondition) -> Edit {
    let (namespace, id) = (NAMESPACE.to_owned(), id.to_owned());
    match kind {
        0 => Edit::Rule { namespace, rule_id: id, to: write.then(|| per_second(9)), expect },
        1 => {
            let to = write.then(|| override_draft("user:1", "base", 9));
            Edit::Override { namespace, override_id: id, to, expect }
        }
        _ => Edit::Client { namespace, client_key: id, to: write.then(|| client_draft("nine")), expect },
    }
}

on_both! {
    async fn every_precondition_holds_for_every_kind(db: Database) {
        let control = &db.control;
        apply(control, [rule("base", per_second(1), Precondition::Anything)]).await;
        let other = override_draft("user:2", "base", 1);
        apply(control, [
            rule("there", per_second(1), Precondition::Anything),
            crate::drafts::overriding("there", other),
            crate::drafts::client("there", client_draft("one")),
        ]).await;
        for kind in 0..3 {
            for (expect, wanted) in MATRIX {
                let cases = [("there", true), ("there", false), ("nothing", true), ("nothing", false)];
                for ((id, write), wanted) in cases.into_iter().zip(wanted) {
                    let mut changes = change_set([edit(kind, id, write, expect)]);
                    changes.dry_run = true;
                    let done = match control.apply(&changes).await {
                        Ok(applied) if applied.changes.is_empty() => Done::Nothing,
                        Ok(_) => Done::Changed,
                        Err(Error::Conflict(_)) => Done::Conflict,
                        Err(Error::NotFound(_)) => Done::NotFound,
                        Err(Error::Stale { version, .. }) => Done::Stale(version),
                        Err(other) => panic!("{other}"),
                    };
                    assert_eq!(done, wanted, "kind {kind}, {id}, write {write}, {expect:?}");
                }
            }
        }
    }
}

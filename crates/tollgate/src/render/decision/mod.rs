//! A decision for people: the same look whether it was made in this process or by a server.

mod from_decision;
mod from_json;
mod view;

pub use from_decision::ruling_text;
pub use view::DecisionView;

//! A decision as text, in the same format for decisions of this process and of a server.

mod from_decision;
mod from_json;
mod view;

pub use from_decision::ruling_text;
pub use view::DecisionView;

//! A decision for people: the same look whether it was made in this process or by a server.

mod answered;
mod made;
mod view;

pub use made::ruling_text;
pub use view::Shown;

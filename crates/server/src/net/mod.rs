//! net

pub mod address;
pub mod limits;

pub use address::Address;
pub use limits::NetLimits;

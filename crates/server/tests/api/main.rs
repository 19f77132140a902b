//! The data API over real sockets: what people who have read the guide expect of it.

mod away;
mod checks;
mod receipts;
mod rig;
mod surfaces;

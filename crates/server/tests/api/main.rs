//! The data API over real sockets: what people who have read the guide expect of it.

mod checks;
mod receipts;
mod rig;
mod surfaces;

//! RESP, the protocol of Redis, in both directions and without I/O.
//!
//! | | a server | a client |
//! |---|---|---|
//! | requests | parses: [`RequestParser`] | writes: [`write_request`] |
//! | replies | writes: [`ReplyWriter`] | parses: [`decode`], or [`ReplyScanner`] without building values |
//!
//! Both parsers accept input that was cut anywhere, never read beyond a limit, and allocate for bytes that have arrived,
//! never for a length that was only announced.

mod inline;
mod length;
mod reply;
mod reply_writer;
mod request;
mod request_writer;
mod scanner;
mod unfit;

pub use reply::{RespValue, decode};
pub use reply_writer::{ProtocolVersion, ReplyWriter, excerpt};
pub use request::{Arguments, ProtocolError, RequestLimits, RequestParser};
pub use request_writer::{write_array_header, write_bulk, write_bulk_header, write_request};
pub use scanner::{ReplyError, ReplyLimits, ReplyScanner, ReplyToken};
pub use unfit::{unknown_command, wrong_number_of_arguments};

//! One primary against real servers, well and unwell.

mod asking;
mod check;
mod cluster;
mod faults;
mod house;
mod proxy;
mod refusals;
mod tls;
mod watch;

//! One primary against real servers, well and unwell.

mod asking;
mod house;

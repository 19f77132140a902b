//! A client of a running server: addresses, tokens, calls and what comes back.

mod answer;
mod api_client;
mod call;
mod connect;
mod refusal;
mod target;
mod token;

pub use answer::Answer;
pub use api_client::{Broken, Client};
pub use call::Call;
pub use connect::Trust;
pub use refusal::Refusal;
pub use target::Target;
pub use token::Token;

//! The program of the conformance suite (`sdk/conformance`): an application behind the layer, and a client that answers
//! lines of JSON.

#![allow(clippy::indexing_slicing, reason = "a member that JSON lacks is null")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of the tests")]

mod app;
mod client;
mod gcra;
mod retry;
mod settings;

use std::process::ExitCode;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["app", "axum"] => app::serve().await,
        ["client"] => client::answer_lines().await,
        _ => Err("write: conformance app axum, or: conformance client".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

//! The plain check alone, for older commits: `script/bench instructions --before COMMIT` makes this their `main.rs`.

mod cases;
mod check;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        None => cases::list(&check::PLAIN),
        Some(case) => check::run(&case, check::request),
    }
}

//! What can be asked on the command line. Each command keeps its flags and its help beside its code.

use clap::{Parser, Subcommand};

use crate::commands::{bench, check, completions, config, explain, man, rules, serve, store};

/// Decides, for every request of an API, whether it may pass.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, after_help = FIRST_MINUTE, max_term_width = 100)]
pub struct Cli {
    /// What to do; nothing prints this help.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve decisions over HTTP
    Serve(Box<serve::Args>),
    /// Print the configuration in effect, and where each value comes from
    Config(Box<config::Args>),
    /// Decide requests: by a rules file in this process, or by a running server
    Check(Box<check::Args>),
    /// Tell of every rule what it makes of a request, here or on a running server
    Explain(Box<explain::Args>),
    /// Work on rules files: lint, explain, test, fmt
    #[command(subcommand)]
    Rules(rules::Command),
    /// Look at what a fleet shares: check a Redis or Valkey
    #[command(subcommand)]
    Store(store::Command),
    /// Send load to a server and tell how it answers
    Bench(Box<bench::Args>),
    /// Print the completion script of a shell
    Completions(completions::Args),
    /// Print the manual page, or write those of all commands
    Man(man::Args),
}

const FIRST_MINUTE: &str = r#"The first minute:
  1. Write rules.yaml:

       rules:
         - match: { tier: free, endpoint: "POST /api/*" }
           limit: { requests: 10, window: 1s, burst: 20 }
       key_by: api_key

  2. Is it right?
       tollgate rules lint rules.yaml
  3. May this one pass? And 25 at once? (add --repeat 25)
       tollgate check --rules rules.yaml --api-key abc --tier free \
         --endpoint "POST /api/orders"
  4. Why? Which rules apply?
       tollgate explain --rules rules.yaml --api-key abc --tier free \
         --endpoint "POST /api/orders"
  5. Keep it so, in CI (see tollgate rules test --help):
       tollgate rules test rules.test.yaml
  6. Serve it; a changed file is read again:
       tollgate serve --rules rules.yaml
  7. Ask the server, from here or with the curl line that it printed:
       tollgate check --url http://127.0.0.1:8080 --api-key abc --tier free \
         --endpoint "POST /api/orders"

Every command takes --help with examples, and --json where it has something to
tell. Colours appear on a terminal only; NO_COLOR=1 turns them off.

Exit codes:
  0  allowed; no problem found; all tests passed
  1  denied; problems found; a test failed
  2  wrong usage, or input that cannot be read"#;

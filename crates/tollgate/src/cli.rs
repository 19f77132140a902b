//! What can be asked on the command line. Each command keeps its flags and its help beside its code.

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    audit, bench, check, clients, completions, config, db, envoy_compat, explain, man, mode, namespaces, overrides,
    rules, serve, status, store, tokens, violations,
};
use crate::exit::Exit;
use crate::output::Output;

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
    /// Serve decisions over HTTP, gRPC, Envoy's rate limit service and RESP
    Serve(Box<serve::Args>),
    /// Serve in the place of envoyproxy/ratelimit: by its variables, on its ports, over its files
    EnvoyCompat(Box<envoy_compat::Args>),
    /// Print the configuration in effect, and where each value comes from
    Config(Box<config::Args>),
    /// Decide requests: by a rules file in this process, or by a running server
    Check(Box<check::Args>),
    /// Tell of every rule what it makes of a request, here or on a running server
    Explain(Box<explain::Args>),
    /// Work on rules: in files (lint, test, fmt) and on a server (list, create, import, rollback)
    #[command(subcommand)]
    Rules(rules::Command),
    /// Which namespaces there are, and how many rules each has
    #[command(subcommand)]
    Namespaces(namespaces::Command),
    /// Other numbers of a rule for one client, for a time
    #[command(subcommand)]
    Overrides(overrides::Command),
    /// What is known of clients: tier, organisation, attributes
    #[command(subcommand)]
    Clients(clients::Command),
    /// Who was refused, how often
    Violations(Box<violations::Args>),
    /// Who changed what, when
    Audit(Box<audit::Args>),
    /// Who may use the admin API
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Print or set whether limits are enforced: enforce, shadow, off
    Mode(Box<mode::Args>),
    /// How a server stands: generation, database, what it left out
    Status(Box<status::Args>),
    /// The tables of the control plane, without a server: migrate, status, token
    #[command(subcommand)]
    Db(db::Command),
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

/// Runs a command. An error means that it could not do its work: exit code 2.
pub fn run(cli: Cli, out: &mut Output) -> Result<Exit> {
    match cli.command {
        Some(Command::Serve(args)) => serve::run(&args, out),
        Some(Command::EnvoyCompat(args)) => envoy_compat::run(&args, out),
        Some(Command::Config(args)) => config::run(&args, out),
        Some(Command::Check(args)) => check::run(&args, out),
        Some(Command::Explain(args)) => explain::run(&args, out),
        Some(Command::Rules(command)) => rules::run(&command, out),
        Some(Command::Namespaces(command)) => namespaces::run(&command, out),
        Some(Command::Overrides(command)) => overrides::run(&command, out),
        Some(Command::Clients(command)) => clients::run(&command, out),
        Some(Command::Violations(args)) => violations::run(&args, out),
        Some(Command::Audit(args)) => audit::run(&args, out),
        Some(Command::Tokens(command)) => tokens::run(&command, out),
        Some(Command::Mode(args)) => mode::run(&args, out),
        Some(Command::Status(args)) => status::run(&args, out),
        Some(Command::Db(command)) => db::run(&command, out),
        Some(Command::Store(command)) => store::run(&command, out),
        Some(Command::Bench(args)) => bench::run(&args, out),
        Some(Command::Completions(args)) => completions::run(&args, Cli::command(), out),
        Some(Command::Man(args)) => man::run(&args, Cli::command(), out),
        None => {
            let help = Cli::command().render_help();
            let help = if out.palette().colour { help.ansi().to_string() } else { help.to_string() };
            out.text(&help)?;
            Ok(Exit::Ok)
        }
    }
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
  8. Change limits while it runs; every node follows within two seconds:
       tollgate rules create --id exports --endpoint "GET /export/*" \
         --key-by api_key --limit 6 --window 1m
       tollgate rules list

Every command takes --help with examples, and --json where it has something to
tell. Colours appear on a terminal only; NO_COLOR=1 turns them off.

Exit codes:
  0  allowed; done; no problem found; all tests passed
  1  denied; refused by a server; problems found; a test failed
  2  wrong usage, input that cannot be read, no answer"#;

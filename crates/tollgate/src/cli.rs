//! The command line: all commands, and the dispatch to them. Each command keeps its flags and its help beside its code.

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    audit, bench, check, clients, completions, config, counters, db, envoy_compat, explain, gateway, grants, keys, man,
    measure, mode, namespaces, overrides, penalties, plans, ready, rules, serve, status, store, tail, tokens, top,
    usage, violations, webhooks, why,
};
use crate::exit::Exit;
use crate::output::Output;

/// Distributed rate limiter: allow or deny every API request.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, after_help = FIRST_MINUTE, max_term_width = 100)]
pub struct Cli {
    /// The command; without one, the help is printed.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve decisions over HTTP, gRPC, Envoy's rate limit service and RESP
    Serve(Box<serve::Args>),
    /// Forward the requests to an API, within the limits: a reverse proxy
    Gateway(Box<gateway::Args>),
    /// Serve as a drop-in replacement of envoyproxy/ratelimit: its variables, ports and files
    EnvoyCompat(Box<envoy_compat::Args>),
    /// Print the effective configuration, and the source of each value
    Config(Box<config::Args>),
    /// Decide requests by a rules file, or ask a running server
    Check(Box<check::Args>),
    /// Explain how each rule evaluates a request, by a rules file or on a running server
    Explain(Box<explain::Args>),
    /// Manage rules: in files (lint, test, fmt) and on a server (list, create, import, rollback)
    #[command(subcommand)]
    Rules(rules::Command),
    /// Namespaces, and the number of rules in each
    #[command(subcommand)]
    Namespaces(namespaces::Command),
    /// Overrides: other limits for one client, for a limited time
    #[command(subcommand)]
    Overrides(overrides::Command),
    /// Grants: units that one client gets once, on top of a quota
    #[command(subcommand)]
    Grants(grants::Command),
    /// Plans: named sets of rules and quotas that clients and organisations have
    #[command(subcommand)]
    Plans(plans::Command),
    /// Client directory: tier, organisation, attributes
    #[command(subcommand)]
    Clients(clients::Command),
    /// API keys of clients: create, list, rotate, revoke
    #[command(subcommand)]
    Keys(keys::Command),
    /// What a client has used of every rule
    Usage(Box<usage::Args>),
    /// Live: what is allowed and refused, by which rule and whom
    Top(Box<top::Args>),
    /// Why a request was allowed or refused: by the id of its decision, or by its client
    Why(Box<why::Args>),
    /// Live: requests that are refused
    Tail(Box<tail::Args>),
    /// What clients have used: reset it
    #[command(subcommand)]
    Counters(counters::Command),
    /// Denied requests, counted by client, rule and minute
    Violations(Box<violations::Args>),
    /// Penalties: who is refused altogether for a while
    #[command(subcommand)]
    Penalties(penalties::Command),
    /// Audit log: every change, its author and its time
    Audit(Box<audit::Args>),
    /// Access tokens: create, list, revoke
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Webhooks: URLs that events are sent to
    #[command(subcommand)]
    Webhooks(webhooks::Command),
    /// Print or set whether limits are enforced: enforce, shadow, off
    Mode(Box<mode::Args>),
    /// State of a server: generation, database, store, quarantined rows
    Status(Box<status::Args>),
    /// Ask a server whether it is ready: a health check without curl
    Ready(Box<ready::Args>),
    /// Database of the control plane, without a server: migrate, status, token
    #[command(subcommand)]
    Db(db::Command),
    /// Shared store of a fleet, Redis or Valkey: check it, show the buckets of a client
    #[command(subcommand)]
    Store(store::Command),
    /// Send load to a server, and measure its rate and latency
    Bench(Box<bench::Args>),
    /// Find out how much an API carries, and propose limits for it
    Measure(Box<measure::Args>),
    /// Print a shell completion script
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands
    Man(man::Args),
}

/// Runs a command. An error ends the process with exit code 2, or as [`ApiProblem::exit`](crate::client::ApiProblem)
/// says.
pub fn run(cli: Cli, out: &mut Output) -> Result<Exit> {
    match cli.command {
        Some(Command::Serve(args)) => serve::run(&args, out),
        Some(Command::Gateway(args)) => gateway::run(&args, out),
        Some(Command::EnvoyCompat(args)) => envoy_compat::run(&args, out),
        Some(Command::Config(args)) => config::run(&args, out),
        Some(Command::Check(args)) => check::run(&args, out),
        Some(Command::Explain(args)) => explain::run(&args, out),
        Some(Command::Rules(command)) => rules::run(&command, out),
        Some(Command::Namespaces(command)) => namespaces::run(&command, out),
        Some(Command::Overrides(command)) => overrides::run(&command, out),
        Some(Command::Grants(command)) => grants::run(&command, out),
        Some(Command::Plans(command)) => plans::run(&command, out),
        Some(Command::Clients(command)) => clients::run(&command, out),
        Some(Command::Keys(command)) => keys::run(&command, out),
        Some(Command::Usage(args)) => usage::run(&args, out),
        Some(Command::Top(args)) => top::run(&args, out),
        Some(Command::Why(args)) => why::run(&args, out),
        Some(Command::Tail(args)) => tail::run(&args, out),
        Some(Command::Counters(command)) => counters::run(&command, out),
        Some(Command::Violations(args)) => violations::run(&args, out),
        Some(Command::Penalties(command)) => penalties::run(&command, out),
        Some(Command::Audit(args)) => audit::run(&args, out),
        Some(Command::Tokens(command)) => tokens::run(&command, out),
        Some(Command::Webhooks(command)) => webhooks::run(&command, out),
        Some(Command::Mode(args)) => mode::run(&args, out),
        Some(Command::Status(args)) => status::run(&args, out),
        Some(Command::Ready(args)) => ready::run(&args, out),
        Some(Command::Db(command)) => db::run(&command, out),
        Some(Command::Store(command)) => store::run(&command, out),
        Some(Command::Bench(args)) => bench::run(&args, out),
        Some(Command::Measure(args)) => measure::run(&args, out),
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

  2. Check it:
       tollgate rules lint rules.yaml
  3. Decide one request, or 25 at once (add --repeat 25):
       tollgate check --rules rules.yaml --api-key abc --tier free \
         --endpoint "POST /api/orders"
  4. Explain the decision, rule by rule:
       tollgate explain --rules rules.yaml --api-key abc --tier free \
         --endpoint "POST /api/orders"
  5. Test the rules in CI (see tollgate rules test --help):
       tollgate rules test rules.test.yaml
  6. Start a server, which reloads the file when it changes:
       tollgate serve --rules rules.yaml
  7. Ask the server, with this command or with the curl command that it printed:
       tollgate check --url http://127.0.0.1:8080 --api-key abc --tier free \
         --endpoint "POST /api/orders"
  8. Change limits at run time; every node applies them within two seconds:
       tollgate rules create --id exports --endpoint "GET /export/*" \
         --key-by api_key --limit 6 --window 1m
       tollgate rules list

Every command has --help with examples, and most have --json. Colours appear on
a terminal only; NO_COLOR=1 turns them off.

Exit codes:
  0  success: allowed, done, no problem found, all tests passed
  1  negative result: denied, rejected by a server, problems found, a test failed
  2  failure: wrong usage, unreadable input, no response"#;

//! `tollgate db ...`: the database of the control plane, without a server.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use serde_json::json;
use tollgate_config::{ControlSettings, DbPlace};
use tollgate_control::record::Role;
use tollgate_control::{Author, Control, DatabaseUrl, Schema, TokenDraft};
use tollgate_server::with_password;

use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::count;

/// The database commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Migrate the tables to this version
    Migrate(Args),
    /// Compare the version of the tables with this version
    Status(Args),
    /// Create an admin token, in case all tokens are lost
    Token(TokenArgs),
}

/// The database.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The database: sqlite (in the state directory), sqlite:PATH, postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "DB", env = "TOLLGATE_DB", hide_env_values = true, default_value = "sqlite")]
    db: String,
    /// Read the database password from this file instead of the URL
    #[arg(long, value_name = "FILE", env = "TOLLGATE_DB_PASSWORD_FILE", hide_env_values = true)]
    db_password_file: Option<PathBuf>,
    /// State directory, which contains the database `sqlite`
    #[arg(long, value_name = "DIR", env = "TOLLGATE_STATE_DIR", hide_env_values = true)]
    state_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A server migrates its database when it starts, unless db_migrate is false: where nodes
lack the rights to alter tables, run this command first with an account that has
them. Concurrent runs are safe. Passwords are never printed.

Examples:
  tollgate db status --db sqlite:/var/lib/tollgate/tollgate.db
  TOLLGATE_DB=postgres://owner@db.internal/limits tollgate db migrate \
    --db-password-file /etc/tollgate/owner-password

Exit codes:
  0  the tables have this version
  1  status: the tables have another version; `db migrate` upgrades older ones
  2  wrong usage, no response from the database"#;

/// The database, and the token to create.
#[derive(Debug, clap::Args)]
#[command(after_help = TOKEN_HELP)]
pub struct TokenArgs {
    /// Name of the token
    #[arg(long, value_name = "NAME", default_value = "made at the database")]
    name: String,
    /// Role of the token
    #[arg(long, value_name = "ROLE", default_value = "admin", value_parser = ["check", "viewer", "on-call", "operator", "admin"])]
    role: String,
    #[command(flatten)]
    database: Args,
}

const TOKEN_HELP: &str = r#"Needs only write access to the database, no token: the way back in when the last admin
token is lost. The new token is printed once, on a line of its own, so that it can be
captured; the audit records its origin. Running servers accept it within seconds.

Examples:
  export TOLLGATE_TOKEN=$(tollgate db token)
  tollgate db token --db postgres://owner@db.internal/limits \
    --db-password-file /etc/tollgate/owner-password --name "after the fire"

Exit codes:
  0  created
  2  wrong usage, no response from the database"#;

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    let (Command::Migrate(args) | Command::Status(args) | Command::Token(TokenArgs { database: args, .. })) = command;
    let place = args.place()?;
    if let (Command::Status(_), DatabaseUrl::Sqlite(path)) = (command, &place)
        && !path.exists()
    {
        // `status` must not create the file.
        return absent(&place, args, out);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a runtime")?;
    runtime.block_on(async {
        let control = Control::open(&place).await.with_context(|| format!("cannot use {place}"))?;
        match command {
            Command::Migrate(_) => migrate(&control, &place, args, out).await,
            Command::Status(_) => status(&control, &place, args, out).await,
            Command::Token(wanted) => token(&control, wanted, out).await,
        }
    })
}

impl Args {
    fn place(&self) -> Result<DatabaseUrl> {
        // The message must not repeat the text, which may contain a password.
        let db: DbPlace = self.db.parse().map_err(|fault| anyhow!("--db: {fault}"))?;
        let settings = ControlSettings {
            db,
            password_file: self.db_password_file.clone(),
            state_dir: self.state_dir.clone(),
            ..ControlSettings::default()
        };
        let place = settings.place().context("no database is configured: name one with --db")?;
        with_password(&place, settings.password_file.as_deref())
    }
}

async fn migrate(control: &Control, place: &DatabaseUrl, args: &Args, out: &mut Output) -> Result<Exit> {
    let steps = control.migrate().await?;
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": "current", "steps": steps }))?,
        false if steps == 0 => out.line(&format!("{place}: nothing to do"))?,
        false => out.line(&format!("{place}: {} run", count(steps, "migration")))?,
    }
    Ok(Exit::Ok)
}

async fn token(control: &Control, wanted: &TokenArgs, out: &mut Output) -> Result<Exit> {
    let role = Role::named(&wanted.role).context("there is no such role")?;
    let draft = TokenDraft { name: wanted.name.clone(), role, namespaces: None, expires_at: None };
    let author = Author { id: "cli".to_owned(), name: "at the database".to_owned() };
    let (record, token) = control.create_token(&draft, &author).await?;
    match wanted.database.json {
        true => out.json_line(
            &json!({ "token_id": record.token_id, "name": record.name, "role": wanted.role, "token": token }),
        )?,
        false => out.line(&token)?,
    }
    Ok(Exit::Ok)
}

fn absent(place: &DatabaseUrl, args: &Args, out: &mut Output) -> Result<Exit> {
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": "absent" }))?,
        false => out.line(&format!(
            "{place}: does not exist yet; a server creates it when it starts, and so does tollgate db migrate"
        ))?,
    }
    Ok(Exit::No)
}

async fn status(control: &Control, place: &DatabaseUrl, args: &Args, out: &mut Output) -> Result<Exit> {
    let schema = control.schema().await?;
    let palette = out.palette();
    let (word, message) = match schema {
        Schema::Current => ("current", palette.good("the tables have this version")),
        Schema::Behind(run, of) => {
            let missing = count(of.saturating_sub(run), "migration");
            ("behind", palette.warn(&format!("{missing} missing: run tollgate db migrate")))
        }
        Schema::Ahead => ("ahead", palette.bad("the tables have a newer version: use a newer tollgate")),
    };
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": word }))?,
        false => out.line(&format!("{place}: {message}"))?,
    }
    Ok(Exit::from_success(schema == Schema::Current))
}

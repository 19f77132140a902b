//! `tollgate db ...`: the tables of the control plane, without a server.

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
use crate::render::count;

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the tables to this version
    Migrate(Args),
    /// Tell how the tables stand to this version
    Status(Args),
    /// Make a token of the admin API, for when nobody has one any more
    Token(TokenArgs),
}

/// Which database.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The database: sqlite (in the state directory), sqlite:PATH, postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "DB", env = "TOLLGATE_DB", hide_env_values = true, default_value = "sqlite")]
    db: String,
    /// The password of the database, so that its URL needs none
    #[arg(long, value_name = "FILE", env = "TOLLGATE_DB_PASSWORD_FILE", hide_env_values = true)]
    db_password_file: Option<PathBuf>,
    /// Where `sqlite` is
    #[arg(long, value_name = "DIR", env = "TOLLGATE_STATE_DIR", hide_env_values = true)]
    state_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A server migrates by itself when it starts, unless db_migrate is false: for a fleet
whose nodes may not change tables, somebody who may runs this first. Several at
once are safe, and nothing is done twice. Passwords are printed nowhere.

Examples:
  tollgate db status --db sqlite:/var/lib/tollgate/tollgate.db
  TOLLGATE_DB=postgres://owner@db.internal/limits tollgate db migrate \
    --db-password-file /etc/tollgate/owner-password

Exit codes:
  0  the tables are those of this version
  1  status: they are not; `db migrate` brings them there, unless they are newer
  2  wrong usage, no answer from the database"#;

/// Which database, and for whom.
#[derive(Debug, clap::Args)]
#[command(after_help = TOKEN_HELP)]
pub struct TokenArgs {
    /// What people know it by
    #[arg(long, value_name = "NAME", default_value = "made at the database")]
    name: String,
    /// What it may do
    #[arg(long, value_name = "ROLE", default_value = "admin", value_parser = ["check", "viewer", "on-call", "operator", "admin"])]
    role: String,
    #[command(flatten)]
    database: Args,
}

const TOKEN_HELP: &str = r#"Whoever can write to the database can make a token: this is the way back in when the
last admin's token is lost. The token is printed once, alone, so that it can be
captured; the audit says that it was made here. Running servers take it within
seconds.

Examples:
  export TOLLGATE_TOKEN=$(tollgate db token)
  tollgate db token --db postgres://owner@db.internal/limits \
    --db-password-file /etc/tollgate/owner-password --name "after the fire"

Exit codes:
  0  made
  2  wrong usage, no answer from the database"#;

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    let (Command::Migrate(args) | Command::Status(args) | Command::Token(TokenArgs { database: args, .. })) = command;
    let place = args.place()?;
    if let (Command::Status(_), DatabaseUrl::Sqlite(path)) = (command, &place)
        && !path.exists()
    {
        // To look is not to make one.
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
        // Never repeats the text: it may hold a password.
        let db: DbPlace = self.db.parse().map_err(|fault| anyhow!("--db: {fault}"))?;
        let settings = ControlSettings {
            db,
            password_file: self.db_password_file.clone(),
            state_dir: self.state_dir.clone(),
            ..ControlSettings::default()
        };
        let place = settings.place().context("there is no database to look at: name one with --db")?;
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
        false => {
            out.line(&format!("{place}: not there yet; a server makes it when it starts, or tollgate db migrate"))?
        }
    }
    Ok(Exit::No)
}

async fn status(control: &Control, place: &DatabaseUrl, args: &Args, out: &mut Output) -> Result<Exit> {
    let schema = control.schema().await?;
    let palette = out.palette();
    let (word, said) = match schema {
        Schema::Current => ("current", palette.good("the tables are those of this version")),
        Schema::Behind(run, of) => {
            let missing = count(of.saturating_sub(run), "migration");
            ("behind", palette.warn(&format!("{missing} missing: run tollgate db migrate")))
        }
        Schema::Ahead => ("ahead", palette.bad("the tables are those of a newer version: use that one")),
    };
    match args.json {
        true => out.json_line(&json!({ "db": place.to_string(), "schema": word }))?,
        false => out.line(&format!("{place}: {said}"))?,
    }
    Ok(Exit::from_success(schema == Schema::Current))
}

//! `PUT /v1/mode`: the kill switch. It is turned here first, and told to the others after.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tollgate_control::record::Role;
use tollgate_control::{Enforcement, Instant};
use tracing::warn;

use super::call::Call;
use super::endpoint::{Access, Body, Content, Endpoint, Method, NamespaceScope, Tag};
use super::fields::Fields;
use super::json;
use super::problem::AdminProblem;
use super::response::AdminResponse;
use super::switchboard::{Scope, Setting};

/// How long the database may take to hear of it before the node goes on alone.
pub const MODE_PATIENCE: Duration = Duration::from_secs(2);

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        reach: NamespaceScope::Nothing,
        answers: &[(200, Content::Json("Enforcement"))],
        ..Endpoint::get("/v1/mode", "getMode", Tag::Mode, "Read the mode", |call| {
            Box::pin(async move { Ok(show(call.admin.switchboard.setting())) })
        })
    },
    Endpoint {
        detail: "`enforce`: as the rules say. `shadow`: everything is counted and nothing denied. `off`: everything is \
                 allowed. Holds at once on this node, whatever store and database do; `scope` says whether all nodes \
                 were told. The roles on-call and operator may switch to `shadow` and back to `enforce`, from any mode but \
                 `off`, which takes an admin's token.",
        access: Access::Needs(Role::OnCall),
        reach: NamespaceScope::Everything,
        body: Body::Json(&["ModeInput"]),
        answers: &[(200, Content::Json("Enforcement"))],
        ..Endpoint::change(Method::Put, "/v1/mode", "setMode", Tag::Mode, "Turn limits off, or on again", |call| {
            Box::pin(set(call))
        })
    },
];

async fn set(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields = Fields::of(json::object(call.body)?, &["mode", "since", "scope"]);
    fields.take("since");
    fields.take("scope");
    let mode = fields.needed_word("mode", &Enforcement::ALL.map(Enforcement::name), Enforcement::named);
    fields.rest()?;
    let Some(mode) = mode else { return Err(AdminProblem::of_faults(Vec::new())) };
    let admin = call.admin;
    let modes = [admin.switchboard.setting().mode, mode];
    if call.who().is_some_and(|who| !who.role.may(Role::Admin)) && modes.contains(&Enforcement::Off) {
        let detail = "Switching to off, and back from it, takes a token of the role admin.";
        return Err(AdminProblem::new(403, "role_too_weak", detail));
    }
    // Whoever says so now has heard what held until now, whatever the clocks of others say.
    let since = admin.now().max(Instant(admin.switchboard.setting().since.0.saturating_add(1)));
    let ours = Setting { mode, since, scope: Scope::Node };
    admin.switchboard.set(ours);
    (admin.node.keep_mode)(mode, since);
    warn!(mode = mode.name(), token = call.author().id, "the mode was set");
    let told = match &admin.control {
        Some(control) => timeout(MODE_PATIENCE, control.set_mode(mode, since, &call.author())).await,
        None => return Ok(show(admin.switchboard.setting())),
    };
    match told {
        Ok(Ok(state)) => {
            let theirs = Setting { mode: state.mode, since: state.mode_since, scope: Scope::Fleet };
            admin.switchboard.confirm(ours, theirs);
            (admin.node.changed)();
        }
        Ok(Err(error)) => warn!(error = %error, "the mode is set on this node alone: the database was not told"),
        Err(_) => warn!("the mode is set on this node alone: the database did not answer in time"),
    }
    Ok(show(admin.switchboard.setting()))
}

fn show(setting: Setting) -> AdminResponse {
    let Setting { mode, since, scope } = setting;
    AdminResponse::json(&json!({ "mode": mode.name(), "since": since.to_string(), "scope": scope.name() }))
}

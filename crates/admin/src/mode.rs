//! `PUT /v1/mode`: the kill switch. It takes effect on this node first and is then written to the database for the others.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tollgate_control::record::Role;
use tollgate_control::{Enforcement, Instant};
use tracing::warn;

use super::access::{AdminAccess, NamespaceScope};
use super::body_fields::BodyFields;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use super::json;
use super::mode_switch::{ModeScope, ModeState};
use super::problem::AdminProblem;
use super::response::AdminResponse;

/// How long the database may take to store the mode before the node responds without it.
pub const MODE_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        scope: NamespaceScope::Nothing,
        responses: &[(200, ResponseContent::Json("Mode"))],
        ..AdminEndpoint::get("/v1/mode", "getMode", Tag::Mode, "Read the mode", |call| {
            Box::pin(async move { Ok(show(call.state.mode_switch.setting())) })
        })
    },
    AdminEndpoint {
        detail: "`enforce`: as the rules say. `shadow`: everything is counted and nothing denied. `off`: everything is \
                 allowed. Holds at once on this node, whatever store and database do; `scope` says whether all nodes \
                 were told. The roles on-call and operator may switch to `shadow` and back to `enforce`, from any mode but \
                 `off`, which takes an admin's token.",
        access: AdminAccess::Needs(Role::OnCall),
        scope: NamespaceScope::Everything,
        body: RequestBody::Json(&["ModeInput"]),
        responses: &[(200, ResponseContent::Json("Mode"))],
        ..AdminEndpoint::change(
            HttpMethod::Put,
            "/v1/mode",
            "setMode",
            Tag::Mode,
            "Turn limits off, or on again",
            |call| Box::pin(set(call)),
        )
    },
];

async fn set(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields = BodyFields::of(json::object(call.body)?, &["mode", "since", "scope"]);
    fields.take("since");
    fields.take("scope");
    let mode = fields.required_word("mode", &Enforcement::ALL.map(Enforcement::name), Enforcement::named);
    fields.rest()?;
    let Some(mode) = mode else { return Err(AdminProblem::of_faults(Vec::new())) };
    let state = call.state;
    let modes = [state.mode_switch.setting().mode, mode];
    if call.identity().is_some_and(|identity| !identity.role.may(Role::Admin)) && modes.contains(&Enforcement::Off) {
        let detail = "Switching to off, and back from it, takes a token of the role admin.";
        return Err(AdminProblem::new(403, "role_too_weak", detail));
    }
    // This call supersedes the current setting, even if the clock of the node that made it is ahead.
    let since = state.now().max(Instant(state.mode_switch.setting().since.0.saturating_add(1)));
    let ours = ModeState { mode, since, scope: ModeScope::Node };
    state.mode_switch.set(ours);
    (state.node.persist_mode)(mode, since);
    warn!(mode = mode.name(), token = call.author().id, "the mode was set");
    let stored = match &state.control {
        Some(control) => timeout(MODE_WRITE_TIMEOUT, control.set_mode(mode, since, &call.author())).await,
        None => return Ok(show(state.mode_switch.setting())),
    };
    match stored {
        Ok(Ok(fleet)) => {
            let theirs = ModeState { mode: fleet.mode, since: fleet.mode_since, scope: ModeScope::Fleet };
            state.mode_switch.confirm(ours, theirs);
            (state.node.notify_nodes)();
        }
        Ok(Err(error)) => warn!(error = %error, "the mode is set on this node only: writing it to the database failed"),
        Err(_) => warn!("the mode is set on this node only: the database did not answer in time"),
    }
    Ok(show(state.mode_switch.setting()))
}

fn show(setting: ModeState) -> AdminResponse {
    let ModeState { mode, since, scope } = setting;
    AdminResponse::json(&json!({ "mode": mode.name(), "since": since.to_string(), "scope": scope.name() }))
}

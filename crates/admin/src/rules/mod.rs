//! Rules: those of the database, which can be changed, and those of files and of plans, which are read-only.

mod aliases;
mod file_rules;
mod list;
mod mode;
mod path_filter;
mod plan_rules;
mod read;
mod resource;
mod table;

pub(super) use mode::ENDPOINTS as MODE_ENDPOINTS;
pub(super) use resource::RuleResource;
pub(super) use table::ENDPOINTS;

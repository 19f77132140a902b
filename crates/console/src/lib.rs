//! The console: what is limited, why, since when, and how to change it, as web pages on the admin listener.
//!
//! Pages are rendered here and work without scripts: links, forms, and charts as SVG. One small script adds what must
//! move. The console is a client of the admin API inside the process: it calls the endpoints with the operator's token,
//! so the API's permissions, validation and audit are the only ones there are.
//!
//! | item | modules |
//! |---|---|
//! | the listener's app: console or API | `app` |
//! | sign-in: the token, sealed into a cookie | `session` |
//! | clients of the two APIs | `api`, `data_calls`, `json` |
//! | one request for a page, its parameters, its operator | `page_call`, `parameters`, `operator`, `state` |
//! | frame, parts of pages | `layout`, `parts`, `chart`, `format`, `help` |
//! | the pages | `pages` |
//! | responses, files, live numbers | `response`, `assets`, `live`, `live_slots` |

mod api;
mod app;
mod assets;
mod chart;
mod data_calls;
mod format;
mod help;
mod json;
mod layout;
mod live;
mod live_slots;
mod operator;
mod page_call;
mod pages;
mod parameters;
mod parts;
mod response;
mod session;
mod state;

pub use app::{Console, ConsoleConfig};

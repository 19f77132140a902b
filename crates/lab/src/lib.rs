//! Real processes for tests, and the pictures of the documents. Never part of a shipped program.
//!
//! | module | provides |
//! |---|---|
//! | [`redis`] | Redis and Valkey: alone, under Sentinels, as a cluster |
//! | [`postgres`] | PostgreSQL, with a fresh database for each test |
//! | [`proxies`] | nginx, Caddy, HAProxy, Envoy and Traefik |
//! | [`fault_proxy`] | a TCP proxy that delays, drops and resets between a node and its store |
//! | [`faults`] | the fault matrix, applied to a fleet of real nodes |
//! | [`durability`] | kills of a node under load, and the usage of quotas that each one costs |
//! | [`process`], [`program`], [`ports`], [`patience`], [`stalls`], [`wall_clock`] | child processes, where their programs are, free ports, waiting, how busy the machine is, a wall clock that steps |
//! | [`closing`] | reading from a peer that may reset the connection |
//! | [`knee`] | a server with a knee: workers that wait, and a queue |
//! | [`overload`] | many times what such a server carries, through a gateway, with and without shedding |
//! | [`plot`] | line charts as SVG |
//! | [`pictures`] | what the algorithms admit over time: driven, measured and drawn |
//!
//! What needs no process is in `tollgate-testkit`.

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

pub mod closing;
pub mod durability;
pub mod fault_proxy;
pub mod faults;
pub mod knee;
pub mod overload;
pub mod patience;
pub mod pictures;
pub mod plot;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod program;
pub mod proxies;
pub mod redis;
pub mod stalls;
pub mod wall_clock;

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;

use crate::connection::{Connection, Era};
use crate::exchange::{Fault, Incoming, listen};
use crate::exports::ambit::tool::changes::News;
use crate::message::{Message, asks};

/// The stream on which the server tells of changes.
struct Listening {
    connection: Rc<Connection>,
    incoming: Incoming,
}

thread_local! {
    static LISTENING: RefCell<Option<Listening>> = const { RefCell::new(None) };
}

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

#[derive(Deserialize)]
struct Acknowledged {
    notifications: Granted,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Granted {
    tools_list_changed: bool,
}

/// The first time: begins to listen, after which nothing is missed. Then: waits for the server to tell of a change.
pub fn next() -> Result<News, Fault> {
    match LISTENING.take() {
        None => begin(),
        Some(mut listening) => {
            wait(&mut listening)?;
            LISTENING.set(Some(listening));
            Ok(News::Changed)
        }
    }
}

fn begin() -> Result<News, Fault> {
    let connection = Connection::renewed()?;
    if !connection.tells_changes {
        return Ok(News::Untold);
    }
    let incoming = match connection.era {
        Era::Stateless => subscribed(&connection)?,
        Era::Session { .. } => stream(&connection)?,
    };
    let Some(incoming) = incoming else { return Ok(News::Untold) };
    LISTENING.set(Some(Listening { connection, incoming }));
    Ok(News::Changed)
}

/// None where the server does not tell of what was asked for.
fn subscribed(connection: &Connection) -> Result<Option<Incoming>, Fault> {
    let (_, mut incoming) = connection.subscribe("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#)?;
    match incoming.next()? {
        Some(Message { error: Some(error), .. }) => Err(Fault::Rpc(error)),
        Some(Message { method: Some(method), params: Some(params), .. }) if method == ACKNOWLEDGED => {
            let granted = serde_json::from_str::<Acknowledged>(params.get()).map(|told| told.notifications).unwrap_or_default();
            Ok(Some(incoming).filter(|_| granted.tools_list_changed))
        }
        _ => Err(Fault::Malformed("it does not acknowledge the subscription")),
    }
}

fn stream(connection: &Connection) -> Result<Option<Incoming>, Fault> {
    let incoming = listen(&connection.configuration, &connection.headers())?;
    match incoming.status() {
        200 if incoming.is_stream() => Ok(Some(incoming)),
        405 | 404 | 501 => Ok(None),
        status => Err(Fault::Status(status)),
    }
}

fn wait(listening: &mut Listening) -> Result<(), Fault> {
    loop {
        let message = listening.incoming.next()?.ok_or(Fault::Lost("the server ended the stream of changes".into()))?;
        listening.incoming.forget_received();
        if message.method.as_deref() == Some(CHANGED) {
            return Ok(());
        }
        if asks(&message) {
            listening.connection.refuse(&message);
        }
    }
}

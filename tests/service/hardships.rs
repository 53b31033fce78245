//! What goes wrong around the service: a database that is away, providers that lie, hostile content.

use crate::kill::{SHORT_LEASE, consistent, ended, outcomes, spec, submit};
use crate::process::{Place, until};
use reprieve::store::{JobState, Outcome};
use sqlx::Connection;

#[tokio::test]
async fn answers_that_came_while_the_database_was_away_past_the_lease_are_kept() {
    let place = Place::new("[answer]\nlatency = \"500ms\"\n", SHORT_LEASE).await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let ids = submit(&place, &store, (0..3).map(|_| spec("m")).collect()).await;
    until("the calls", || async { (place.sim.stats().totals.received == 3).then_some(()) }).await;
    let mut other = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
    until("the answers", || async { (place.sim.stats().totals.completed == 3).then_some(()) }).await;
    service.logs("the lease ran out").await;
    sqlx::query("COMMIT").execute(&mut other).await.unwrap();
    for id in ids {
        assert_eq!(ended(&store, id).await.state, JobState::Succeeded);
        assert_eq!(outcomes(&reprieve::store::Store::turns(&store, id).await.unwrap()), [Outcome::Completed]);
    }
    assert_eq!(place.sim.stats().totals.received, 3, "an answer was thrown away and asked for again");
    service.stop().await;
    consistent(&place).await;
}

//! The read connections. Whoever reads takes one and gives it back; nothing here can write.

use super::conn::Conn;
use super::place::Place;
use crate::store::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Debug)]
pub(super) struct Readers {
    free: Arc<Semaphore>,
    home: Arc<Mutex<Vec<Conn>>>,
    place: Place,
}

/// A connection on loan; it goes home when dropped.
#[derive(Debug)]
pub(super) struct Loan {
    conn: Option<Conn>,
    home: Arc<Mutex<Vec<Conn>>>,
    _permit: OwnedSemaphorePermit,
}

impl Readers {
    pub fn new(conns: Vec<Conn>, place: Place) -> Self {
        Self { free: Arc::new(Semaphore::new(conns.len())), home: Arc::new(Mutex::new(conns)), place }
    }

    pub async fn take(&self) -> Result<Loan> {
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| Error::Closed)?;
        self.place.check()?;
        let conn = self.home.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut loan = Loan { conn, home: Arc::clone(&self.home), _permit: permit };
        if let Some(conn) = &mut loan.conn {
            conn.end_read().await;
        }
        Ok(loan)
    }

    /// Lends nothing any more and closes what is at home; a connection on loan closes with its last handle.
    pub async fn close(&self) {
        self.free.close();
        loop {
            let conn = self.home.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(conn) = conn else { break };
            conn.close().await;
        }
    }
}

impl Loan {
    pub fn conn(&mut self) -> Result<&mut Conn> {
        // Each permit stands for one connection at home, until the store closes.
        self.conn.as_mut().ok_or(Error::Closed)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.home.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
    }
}

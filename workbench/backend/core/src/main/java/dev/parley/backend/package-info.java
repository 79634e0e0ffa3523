/**
 * Real brokers and databases as processes of their own, on loopback, on free ports, with folders of their own. They end
 * with the run in every case.
 *
 * <p>Starting points: {@link dev.parley.backend.Backends} by name, {@link dev.parley.backend.Backend} to add one.
 * Starting blocks until a message has made the round trip. Imports the process module.
 */
@NullMarked
package dev.parley.backend;

import org.jspecify.annotations.NullMarked;

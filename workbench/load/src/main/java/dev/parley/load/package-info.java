/**
 * The load generator: schedules say when requests are due, drivers send them, recorders keep what became of each. A process of its own,
 * told what to do by lines of JSON on its standard input.
 *
 * <p>Starting points: {@link dev.parley.load.GeneratorMain} is the process, {@link dev.parley.protocol.Command} and
 * {@link dev.parley.protocol.Event} what it is told and tells, {@link dev.parley.load.Engine} one trial. It sees
 * technologies only as {@link dev.parley.spi.Neighbour}. Imports the spi, the model and the protocol.
 */
@NullMarked
package dev.parley.load;

import org.jspecify.annotations.NullMarked;

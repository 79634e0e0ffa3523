/**
 * The load generator: schedules say when requests are due, drivers send them, recorders keep what became of each. A process of its own,
 * told what to do by lines of JSON on its standard input.
 *
 * <p>Starting points: {@link dev.parley.load.GeneratorMain} is the process, {@link dev.parley.load.Command} and
 * {@link dev.parley.load.Event} what it is told and tells, {@link dev.parley.load.Engine} one trial. It sees technologies only as
 * {@link dev.parley.spi.Neighbour}. Imports the spi and the model.
 */
@NullMarked
package dev.parley.load;

import org.jspecify.annotations.NullMarked;

/**
 * What the lab and the processes that it starts say to each other, a line each: the load generator is told a
 * {@link dev.parley.protocol.Command} and tells an {@link dev.parley.protocol.Event}, a service is told a
 * {@link dev.parley.protocol.ServiceCommand} and tells a {@link dev.parley.protocol.ServiceEvent}.
 *
 * <p>Starting point: {@link dev.parley.protocol.Protocol}, which writes and reads the lines. Every service carries this
 * module, and a service's class path is part of what is measured: it imports the model and the JDK only.
 */
@NullMarked
package dev.parley.protocol;

import org.jspecify.annotations.NullMarked;

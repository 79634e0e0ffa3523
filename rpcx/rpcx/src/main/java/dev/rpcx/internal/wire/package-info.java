/**
 * Frames and messages of both wires, and the connections that read and write them, for the client's and the server's
 * connections to extend.
 *
 * <p>It uses {@code io}, {@code ledger}, {@code dev.rpcx.internal}, of {@code dev.rpcx} the metadata and errors that it
 * encodes, and {@code dev.rpcx.testing.Faults}. It must not know what a call is and what becomes of it: a frame that
 * has come, and the end of a connection, go to the subclasses in {@code client} and {@code server}.
 *
 * <ul>
 *   <li>Bytes of the native wire: {@link Wire} has its numbers; {@link Settings} is the SETTINGS frame,
 *       {@link MethodDictionary} the DICTIONARY frame with the server's methods; {@link MetadataFields} encodes
 *       metadata in a request; {@link WireError} is the error message of both wires.
 *   <li>A native connection: {@link Outbound} is a message on its way out, such as a call; {@link Outbox} is the queue
 *       in which threads put messages for the event loop; {@link WireConnection} gathers and sends them, cuts what
 *       arrives into frames, and ends; {@link FrameScheduler} lets large messages, and those that wait for the socket,
 *       leave by turns; {@link KeepAlive} finds a peer that is gone, by PING.
 *   <li>The classic wire: {@link ClassicWire} encodes its messages; {@link ClassicFrames} cuts what arrives into
 *       frames; {@link ClassicConnection} reads, writes, and ends when the peer does not do its part.
 *   <li>A bad network, for tests: {@link FaultyFrames} applies the faults to frames; {@link FaultyPipe} does so within
 *       a client's pipeline.
 * </ul>
 *
 * <p><b>Out:</b> {@code WireConnection.sendHere} writes a small message on the thread that sends it, by the
 * {@code WriteTurn} of {@code io}. Where the turn is taken or something is queued, {@code send} puts the message into
 * {@code Outbox} and wakes the event loop, which asks {@code Outbound.beforeSend}, gathers, and flushes once.
 * <b>In:</b> {@code channelRead} on the event loop, {@code beforeRead}, then {@code onFrame} for each frame. <b>The
 * end:</b> whatever ends a connection comes to {@code close} or {@code abort}. Both end the writing, call
 * {@code onClosed}, in which the subclass ends its calls, and {@code onDropped} of each message in the outbox.
 *
 * <p><b>A third wire</b> would have its messages and its connection here, as {@code ClassicWire} and
 * {@code ClassicConnection} are. At a server {@code Sniffer} would tell it by its first byte, and it would need what
 * {@code ClassicServerConnection} and {@code ClassicServerCall} are. At a client it would need what
 * {@code ClassicMethod} is, made by {@code ClientProxy}, and what {@code ClassicClientConnection} is, made by
 * {@code ClientAddress} and waited for in {@code Route}. Each side would have a setting beside {@code classic}.
 *
 * <p>Threads: any thread may send on a native connection. Whatever is not marked as callable from anywhere runs on the
 * connection's event loop.
 */
@NullMarked
package dev.rpcx.internal.wire;

import org.jspecify.annotations.NullMarked;

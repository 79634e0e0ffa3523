/**
 * Frames and messages of both wires, and the connections that read and write them. These are abstract classes, which
 * the client's and the server's connections extend.
 *
 * <p>This package uses {@code io}, {@code ledger}, {@code dev.rpcx.internal}, {@code HeapArray} of {@code codec},
 * {@code MethodSchema} of {@code internal.schema}, and {@code dev.rpcx.testing.Faults}. Of {@code dev.rpcx} it uses the
 * metadata and the errors, which it encodes, and {@code VisibleText}. It must not know what a call is and what becomes
 * of it: the subclasses in {@code client} and {@code server} are notified of each frame that has arrived, and of the
 * end of a connection.
 *
 * <ul>
 *   <li>Bytes of the native wire: {@link Wire} has its numbers, such as the types and flags of frames; {@link Settings}
 *       is the SETTINGS frame, {@link MethodDictionary} the DICTIONARY frame with the server's methods, and
 *       {@link SchemaFrames} the SCHEMA frame with their members; {@link MetadataFields} encodes the metadata of a
 *       request, a reply or an error; {@link WireError} is the error message of both wires, with the details of the
 *       error.
 *   <li>A native connection: {@link Outbound} is a message on its way out, such as a call; {@link Outbox} is the queue
 *       in which threads put messages for the event loop; {@link WireConnection} gathers and sends them, cuts what
 *       arrives into frames, and ends; {@link FrameScheduler} chooses which of the large messages, and of those that
 *       wait for the socket, sends the next frame; {@link KeepAlive} finds a peer that is gone, by PING.
 *   <li>The classic wire: {@link ClassicWire} encodes its messages; {@link ClassicFrames} cuts what arrives into
 *       frames; {@link ClassicConnection} reads, writes, and ends if the peer sends or reads too slowly, or if nobody
 *       uses it.
 *   <li>The end of a connection: {@link ConnectionErrors} makes its errors, and has the texts that both wires, or both
 *       sides, use.
 *   <li>A bad network, for tests: {@link FaultyFrames} applies the faults to frames; {@link FaultyPipe} does so within
 *       a client's pipeline.
 * </ul>
 *
 * <p><b>Out:</b> {@code WireConnection.sendHere} writes a small message on the thread that sends it, by the
 * {@code WriteTurn} of {@code io}. If somebody else has the turn or a message is queued, {@code sendHere} returns
 * false, and its caller calls {@code send}: it puts the message into {@code Outbox} and wakes the event loop, which
 * asks {@code Outbound.beforeSend}, gathers the messages, and flushes once ({@code flushQueued},
 * {@code flushGathered}). <b>In:</b> the event loop calls {@code channelRead}, which calls {@code beforeRead}, and then
 * {@code onFrame} for each frame. <b>The end:</b> whatever ends a connection calls {@code close} or {@code abort}. Both
 * first end the writing. Then they call {@code onClosed}, in which the subclass ends its calls, and {@code onDropped}
 * of each message in the outbox. {@code close} still sends what has been written, by {@code HalfClose} of {@code io};
 * {@code abort} does not. If the peer breaks a rule, the code that notices it throws a {@code WireFault} or calls
 * {@code fail}. The reason then goes to the peer as an ERROR frame with the id 0, and {@code close} follows.
 *
 * <p><b>A new field of a request</b> would be written by {@code RequestWriter} of {@code client}, and read by
 * {@code RequestReader} of {@code server}. A flag says that a field is there, such as the time or the metadata. All
 * four flags of a request are in use, so a new field would also need a new frame type in {@code Wire}. A field of a
 * REPLY, such as its metadata, is sent only to a client whose SETTINGS say that it reads the field.
 *
 * <p><b>A new kind of error</b> would be a constant of {@code RPCXException.Code}. {@code WireError} gives it a number
 * on both wires. At a client, {@code Health.Outcome.of} says whether it counts against the instance, and
 * {@code Attempts} whether the call gets another attempt.
 *
 * <p><b>A third wire</b> at a server is a {@code TranslatedWire} of {@code server}, as gRPC is: {@code Sniffer}
 * recognizes the wire by its first byte, and puts a translator in front of a native connection. At a client, there
 * would be a counterpart of {@code ClassicMethod}, made by {@code ClientProxy}, and one of
 * {@code ClassicClientConnection}, made by {@code ClientAddress} and waited for in {@code Route}. Each side has a
 * setting for the wire, like the setting {@code classic}.
 *
 * <p>Threads: any thread may send on a native connection. A method runs on the connection's event loop unless its
 * comment says that any thread may call it.
 */
@NullMarked
package dev.rpcx.internal.wire;

import org.jspecify.annotations.NullMarked;

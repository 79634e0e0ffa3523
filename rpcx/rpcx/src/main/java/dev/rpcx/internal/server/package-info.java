/**
 * Takes a request from a connection to its handler and sends the reply: admission, threads, deadlines, replies.
 *
 * <p>It may use every room up to {@code call}. It must know neither {@code discovery} nor {@code client}, nor the
 * doors: {@code Server} hands in {@link ServerSettings} and the methods that {@code RegistryServer} has found.
 *
 * <ul>
 *   <li>Before the first call: {@link ServiceIndex} reads the index of services that the annotation processor has
 *       written, {@link PackageScan} finds those of a package; {@link ServerMethod} is a published method: its codecs,
 *       its handle, its interceptors, its limit, and where it runs; {@link ServerPlatform} makes the threads, which a
 *       simulation replaces; {@code ServerSettings} are the settings.
 *   <li>The server itself: {@link ServerCore} listens, takes or closes new connections, and stops;
 *       {@link ServedConnection} is a connection as it sees it, whichever wire that speaks.
 *   <li>From the first byte to a call: {@link Sniffer} tells the wires apart; {@link ServerConnection} takes the frames
 *       of the native wire, and ends calls; {@link FloodGuard} counts frames that cost their sender nothing;
 *       {@link RequestReader} reads what stands before the arguments of a request; {@link ServerCall} is one request
 *       and then its reply; {@link LoopState} is the part of it that only the event loop touches,
 *       {@link UnfinishedMessage} the progress of a message in parts, {@link CallCharges} what it is charged for;
 *       {@link CallList} is a list of calls; {@link ClassicServerConnection} and {@link ClassicServerCall} are the same
 *       on the classic wire.
 *   <li>Admission: {@link Admission} decides which calls of a connection may begin, by their places, by what their
 *       requests take and by the limits of their methods; {@link RunningHandlers} knows how many handlers of a
 *       connection run; {@link AdmissionLimit} says whether one more of a method may, and learns how many of a method
 *       may run at once, from {@link GivenTimes}, {@link HandlerTimeHistogram} and {@link Medians};
 *       {@link PostponedCalls} holds calls back while their caller does not read.
 *   <li>Threads of handlers: {@link ConnectionThreads} is one connection's way to them; {@link PoolShares} shares a
 *       pool among connections, with {@link IndexedHeap} to find the next one; {@link Threads} is all threads of a
 *       server: {@link VirtualWorkers} runs handlers of one event loop on virtual threads, whose number has no limit of
 *       its own (the method's limit and the places of the connection bound the calls), {@link WorkerPool} is the pool
 *       of platform threads.
 *   <li>The handler: {@link ServerSteps} is the list of what is done with a call, from its arguments to its reply;
 *       {@link HandledContext} is its context: its deadline, its cancel, its state; {@link CallThreads} runs what user
 *       code has to run beside it; {@link PendingResult} waits for a future that the handler has returned, and takes
 *       its result; {@link Stages} has one hook on each stage, however many calls wait for it; {@link DetachableStage}
 *       is what interceptors see of such a stage.
 *   <li>The reply: {@link ReplyWriter} writes a result or an error, and charges for it; {@link CallErrors} has the
 *       errors that callers of both wires are told; {@link SentReplies} decides whether a handler's thread writes it,
 *       and has the event loop learn of it.
 *   <li>Ends that no reply brings: {@link DueSoon} has the calls whose time is over soon; {@link LostCalls} notes that
 *       a thread had no memory or stack left to end its call, and the event loop then ends that call.
 * </ul>
 *
 * <p><b>A request, in.</b>
 *
 * <ol>
 *   <li>{@code ServerCore} opens an account for a new connection, or closes it; {@code Sniffer} looks at the first byte
 *       and puts {@code ServerConnection} or {@code ClassicServerConnection} in its place.
 *   <li>{@code WireConnection} cuts a frame, {@code ServerConnection.onRequest} looks at its slot, and
 *       {@code RequestReader} reads its prelude: the method, by {@code ServerCore.method}, the time that is left, and
 *       the metadata.
 *   <li>{@code Admission} gives it a place, charges for its metadata, and has its handler enter the method's limit, by
 *       {@code RunningHandlers} and {@code AdmissionLimit}. Where there is no room, {@code ServerConnection} refuses it
 *       as OVERLOADED. A request in parts is admitted when it is whole.
 *   <li>{@code ServerCall.begin} makes the {@code HandledContext}; {@code ServerConnection.dispatch} has
 *       {@code Admission} keep and charge the request's bytes, and has the deadline watched.
 *   <li>{@code ServerConnection.start} gives the call to {@code ConnectionThreads}: a virtual thread runs it by
 *       {@code Threads} and {@code VirtualWorkers}, a pool's thread by {@code PoolShares}, {@code Threads} and
 *       {@code WorkerPool}. Where the method runs on the event loop, {@code handleInLoop} runs it at once.
 *   <li>{@code ServerSteps.run} gives the call back to {@code PostponedCalls} where its caller does not read; otherwise
 *       {@code handle} refuses a call that comes too late, decodes the arguments, and calls
 *       {@code ServerMethod.invoke}: the interceptors by {@code Chain} of {@code call}, if any, and then the handler.
 * </ol>
 *
 * <p><b>The reply, out.</b>
 *
 * <ol>
 *   <li>A stage that the handler has returned ends by {@code PendingResult}; a publisher goes to {@code StreamSender}
 *       of {@code call}. Every other result, and every failure, comes to {@code ServerSteps.finish}.
 *   <li>{@code finish} has the handler leave by {@code Admission}, where {@code AdmissionLimit} learns how long it
 *       took, and {@code ReplyWriter} write the result or the error and charge a reply that is large.
 *   <li>{@code SentReplies.send} has the handler's thread write a small reply where the connection is quiet, by
 *       {@code WireConnection.sendHere} and {@code WriteTurn}. Otherwise it goes by {@code Outbox} to the event loop,
 *       where {@code ServerCall.beforeSend} drops a reply that nobody waits for, and holds one that has to wait.
 *   <li>Only one final frame leaves: {@code ServerCall.tryEnd} decides between a handler's thread that writes its reply
 *       and an event loop that ends the call otherwise. {@code WriteTurn} asks for that by
 *       {@code ServerCall.beforeDirectWrite}, which adds the call to {@code SentReplies}.
 *   <li>{@code ServerConnection.replied} frees the slot, and {@code recycle} gives the place back to {@code Admission}:
 *       after the last byte of a reply that the event loop has written; for a reply that a handler's thread has
 *       written, before the next frames are read ({@code SentReplies.endUnseen}).
 * </ol>
 *
 * <p><b>Other ends.</b> A deadline is enforced by {@code ServerConnection.look}, which one timer for the whole
 * connection calls: {@code endIfDue} cancels the handler and answers DEADLINE_EXCEEDED; {@code checkDetached} cancels
 * the handler of a notice. On the classic wire {@code ClassicServerConnection.endLate} enforces it. A call that has
 * waited too long for its thread is refused by {@code ServerSteps.decode}, and {@code RequestReader} cuts a call's time
 * to the server's longest. When a connection is lost, {@code onClosed} cancels each of its calls that is no notice
 * ({@code abandonAll}). A call whose handler goes on running stays charged until the handler ends.
 *
 * <p><b>Threads.</b> A connection and its calls belong to one event loop; a handler's thread has its {@code ServerCall}
 * from {@code ServerSteps.run} to {@code finish}. {@code ThreadFactories} of {@code io} makes virtual threads and those
 * of the pool; without virtual threads (JDK 17 to 20) all handlers but those on event loops run on the pool.
 */
@NullMarked
package dev.rpcx.internal.server;

import org.jspecify.annotations.NullMarked;

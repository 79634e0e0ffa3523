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
 *       of the native wire, decides what is refused, and ends calls; {@link FloodGuard} counts frames that cost their
 *       sender nothing; {@link ServerCall} is one request and then its reply; {@link LoopState} is the part of it that
 *       only the event loop touches, {@link UnfinishedMessage} the progress of a message in parts, {@link CallCharges}
 *       what it is charged for; {@link CallList} is a list of calls; {@link ClassicServerConnection} and
 *       {@link ClassicServerCall} are the same on the classic wire.
 *   <li>Admission: {@link RunningHandlers} knows how many handlers of a connection run; {@link AdmissionLimit} decides
 *       whether one more may, and learns how many of a method may run at once, from {@link GivenTimes},
 *       {@link HandlerTimeHistogram} and {@link Medians}; {@link PostponedCalls} holds calls back while their caller
 *       does not read.
 *   <li>Threads of handlers: {@link ConnectionThreads} is one connection's way to them; {@link PoolShares} shares a
 *       pool among connections, with {@link IndexedHeap} to find the next one; {@link Threads} is all threads of a
 *       server: {@link VirtualWorkers} are virtual ones, {@link WorkerPool} is the pool of platform threads.
 *   <li>The handler: {@link HandledContext} is its context: its deadline, its cancel, its state; {@link CallThreads}
 *       runs what user code has to run beside it; {@link PendingResult} takes a result that comes later; {@link Stages}
 *       has one hook on each stage, however many calls wait for it; {@link DetachableStage} is what interceptors see of
 *       such a stage.
 *   <li>Ends that no reply brings: {@link DueSoon} has the calls whose time is over soon; {@link LostCalls} says that a
 *       thread has failed over the end of a call, which the event loop then ends.
 * </ul>
 *
 * <p><b>A request, in.</b>
 *
 * <ol>
 *   <li>{@code ServerCore} opens an account for a new connection, or closes it; {@code Sniffer} looks at the first byte
 *       and puts {@code ServerConnection} or {@code ClassicServerConnection} in its place.
 *   <li>{@code WireConnection} cuts a frame, and {@code ServerConnection.onRequest} reads its prelude: the method, by
 *       {@code ServerCore.method}, the time that is left, and the metadata.
 *   <li>The same method refuses as OVERLOADED what finds no place, no room for its metadata, or is not admitted by
 *       {@code RunningHandlers} and {@code AdmissionLimit}. A request in parts is admitted when it is whole.
 *   <li>{@code ServerCall.begin} makes the {@code HandledContext}; {@code ServerConnection.dispatch} keeps the
 *       request's bytes, charged or refused by {@code holdCounted}, and has the deadline watched.
 *   <li>{@code ServerConnection.start} gives the call to {@code ConnectionThreads}: a virtual thread runs it by
 *       {@code Threads} and {@code VirtualWorkers}, a pool's thread by {@code PoolShares}, {@code Threads} and
 *       {@code WorkerPool}. Where the method runs on the event loop, {@code handleInLoop} runs it at once.
 *   <li>{@code ServerCall.run} gives the call back to {@code PostponedCalls} where its caller does not read; otherwise
 *       {@code handle} refuses a call that comes too late, decodes the arguments, and calls
 *       {@code ServerMethod.invoke}: the interceptors by {@code Chain} of {@code call}, if any, and then the handler.
 * </ol>
 *
 * <p><b>The reply, out.</b>
 *
 * <ol>
 *   <li>A stage that the handler has returned ends by {@code PendingResult}; a publisher goes to {@code StreamSender}
 *       of {@code call}. Every other result, and every failure, comes to {@code ServerCall.finish}.
 *   <li>{@code finish} has {@code AdmissionLimit} learn how long the handler took, encodes the result or the error, and
 *       charges a reply that is large.
 *   <li>{@code ServerConnection.replyHere} has the handler's thread write a small reply where the connection is quiet,
 *       by {@code WireConnection.sendHere} and {@code WriteTurn}. Otherwise it goes by {@code Outbox} to the event
 *       loop, where {@code ServerCall.beforeSend} drops a reply that nobody waits for, and holds one that has to wait.
 *   <li>Only one final frame leaves: {@code ServerCall.tryEnd} decides between a handler's thread that writes its reply
 *       and an event loop that ends the call otherwise.
 *   <li>{@code ServerConnection.replied} frees the slot, and {@code recycle} the place: after the last byte, or, of a
 *       reply that a handler's thread has written, before the next frames are read ({@code beforeRead}).
 * </ol>
 *
 * <p><b>Other ends.</b> A deadline is enforced by {@code ServerConnection.look}, which one timer for the whole
 * connection calls: {@code endIfDue} cancels the handler and answers DEADLINE_EXCEEDED; {@code checkDetached} cancels
 * the handler of a notice. On the classic wire {@code ClassicServerConnection.endLate} enforces it. A call that has
 * waited too long for its thread is refused by {@code ServerCall.handle}, and {@code onRequest} cuts a call's time to
 * the server's longest. When a connection is lost, {@code onClosed} cancels all its calls but notices
 * ({@code abandonAll}), and those whose handlers run on stay charged until these end.
 *
 * <p><b>Threads.</b> A connection and its calls belong to one event loop; a handler's thread has its {@code ServerCall}
 * from {@code run} to {@code finish}. {@code ThreadFactories} of {@code io} makes virtual threads and those of the
 * pool; without virtual threads (JDK 17 to 20) all handlers but those on event loops run on the pool.
 */
@NullMarked
package dev.rpcx.internal.server;

import org.jspecify.annotations.NullMarked;

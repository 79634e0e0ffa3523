/**
 * Takes a request from a connection to its handler and sends the reply: admission, threads, deadlines, replies.
 *
 * <p>This package may use every room up to {@code call}. It must know neither {@code discovery} nor {@code client}, and
 * none of the doors: {@code Server}, which is a door, hands in {@link ServerSettings} and the methods that
 * {@code RegistryServer} has found.
 *
 * <ul>
 *   <li>Before the first call: {@link ServiceIndex} reads the index of services that the annotation processor has
 *       written, and says which services were compiled without it; {@link PackageScan} finds the services of a package;
 *       {@link Reflection} is the service that describes the others, if a server is to have it; {@link ServerMethod} is
 *       a published method: its codecs, its handle, its interceptors, its limit, and where it runs;
 *       {@link ServerPlatform} makes the threads, and a simulation has one of its own; {@code ServerSettings} are the
 *       settings.
 *   <li>The server itself: {@link ServerCore} listens, takes or closes new connections, and stops;
 *       {@link ServedConnection} is a connection as the server sees it, on either wire.
 *   <li>Wires of others: {@link TranslatedWire} is a wire, such as gRPC, whose messages are turned into frames of the
 *       native wire in front of a {@code ServerConnection}; {@link GrpcProvider} finds the library that does so.
 *   <li>From the first byte to a call: {@link Sniffer} distinguishes the wires, and closes a connection that sends
 *       nothing at first; {@link ServerConnection} takes the frames of the native wire, and ends calls;
 *       {@link FloodGuard} ends a connection with too many frames that cost their sender nothing (CANCEL, PING,
 *       SETTINGS, SCHEMA); {@link RequestReader} reads what stands before the arguments of a request;
 *       {@link ServerCall} is one request and then its reply; {@link LoopState} is the part of a call's state that only
 *       the event loop uses, {@link UnfinishedMessage} notes when a message in parts began and how much of it has
 *       arrived, and {@code ServerConnection.endIfDue} ends the call if the parts come too slowly; {@link CallCharges}
 *       holds the charges of a call; {@link CallList} is a list of calls; {@link ClassicServerConnection} and
 *       {@link ClassicServerCall} are the connection and the call of the classic wire.
 *   <li>Admission: {@link Admission} decides which calls of a native connection may begin, by their places, by what
 *       their requests take and by the limits of their methods; {@link RunningHandlers} knows how many handlers of a
 *       connection run; {@link AdmissionLimit} says whether one more handler of a method may run, and learns how many
 *       handlers of the method may run at once, from {@link GivenTimes}, {@link HandlerTimeHistogram} and
 *       {@link Medians}; {@link PostponedCalls} holds calls back while their caller does not read.
 *   <li>Threads of handlers: {@link ConnectionThreads} gives the handlers of one connection to threads;
 *       {@link PoolShares} shares a pool among connections, and finds the next connection by {@link IndexedHeap};
 *       {@link Threads} holds all threads for the handlers of a server: {@link VirtualWorkers} runs handlers of one
 *       event loop on virtual threads, whose number has no limit of its own (the method's limit and the places of the
 *       connection bound the calls), {@link WorkerPool} is the pool of platform threads.
 *   <li>The handler: {@link ServerSteps} is the list of what is done with a call, from its arguments to its reply;
 *       {@link HandledContext} is its context: its deadline, its cancel, its state; {@link CallThreads} runs the user
 *       code of a call that its handler does not run itself; {@link PendingResult} waits for a future that the handler
 *       has returned, and takes its result; {@link Stages} attaches one consumer, the hook, to each stage, however many
 *       calls wait for the stage; {@link DetachableStage} is the stage that interceptors see instead of the one that
 *       the handler has returned.
 *   <li>The reply: {@link ReplyWriter} writes a result or an error, and charges for it; {@link ServerCallErrors} makes
 *       the errors of calls that have been given to a handler, for both wires (a refusal before that has its text where
 *       it is made, in {@code RequestReader}, {@code ServerConnection} and {@code ClassicServerConnection}, or in
 *       {@code ServerCallErrors} if both wires have it); {@link SentReplies} decides whether a handler's thread sends
 *       the reply, and later notifies the event loop of that.
 *   <li>What the caller does not learn: {@link HandlerFailures} logs the exceptions of handlers and interceptors with
 *       their stack traces and causes.
 *   <li>Calls that end otherwise: {@link DueSoon} has the calls whose time is over soon; {@link LostCalls} notes that a
 *       thread had no memory or stack left to end its call, and the event loop then ends that call.
 * </ul>
 *
 * <p><b>A request, in.</b> The classes are named in the order in which a request passes them;
 * {@code docs/decisions/0023-rooms-have-an-order.md} counts their files.
 *
 * <ol>
 *   <li>{@code ServerCore} opens an account for a new connection, or closes it; {@code Sniffer} looks at the first
 *       byte, and then {@code ServerConnection} or {@code ClassicServerConnection} takes the place of the sniffer.
 *   <li>{@code CloseWatch} of {@code io} passes the event of the socket on, {@code WireConnection} cuts a frame,
 *       {@code ServerConnection.onRequest} checks the slot of the request, {@code FloodGuard} counts the request, and
 *       {@code RequestReader} reads what precedes the arguments: the method, which it finds by
 *       {@code ServerCore.method}, the time that is left, and the metadata.
 *   <li>{@code Admission} gives the request a place, charges for its metadata, and counts its handler, by
 *       {@code RunningHandlers} and {@code AdmissionLimit}. If there is no room for one of these,
 *       {@code ServerConnection} refuses the request as OVERLOADED ({@code admit}; {@code dispatch} for a request in
 *       parts). On the classic wire, {@code ClassicServerConnection.take} does all this without {@code Admission}. A
 *       request in parts is admitted when it is whole.
 *   <li>{@code ServerCall.begin} makes the {@code HandledContext}; {@code ServerConnection.dispatch} keeps and charges
 *       the request's bytes, by {@code Admission.holdWhole}, adds the call to {@code DueSoon}, and sets the timer for
 *       the deadline. A call that runs on the event loop and whose request is one frame is neither counted by
 *       {@code AdmissionLimit} nor copied. Its timer is set when its handler has returned, if the call goes on.
 *   <li>{@code ServerConnection.start} gives the call to {@code ConnectionThreads}: a virtual thread runs the call, by
 *       {@code Threads} and {@code VirtualWorkers}, or a thread of the pool, by {@code PoolShares}, {@code Threads} and
 *       {@code WorkerPool}. If the method runs on the event loop, {@code handleInLoop} runs the call at once.
 *   <li>{@code ServerSteps.run} gives the call back to {@code PostponedCalls} if its caller does not read; otherwise
 *       {@code handle} refuses a call that comes too late, decodes the arguments, and calls
 *       {@code ServerMethod.invoke}: the interceptors by {@code Chain} of {@code call}, if any, and then the handler.
 * </ol>
 *
 * <p><b>The reply, out.</b>
 *
 * <ol>
 *   <li>If the handler has returned a stage, {@code PendingResult} takes the stage's result. A publisher goes to
 *       {@code StreamSender} of {@code call}. Every other result, and every failure, goes to
 *       {@code ServerSteps.finish}.
 *   <li>{@code finish} calls {@code Admission.leave}, which stops counting the handler, and {@code AdmissionLimit}
 *       learns how long the handler took. Then {@code ReplyWriter} writes the result or the error, and charges a reply
 *       that is large.
 *   <li>{@code SentReplies.send} writes a small reply on the handler's thread, by {@code WireConnection.sendHere} and
 *       {@code WriteTurn}, if no other call is under way on the connection. Otherwise the reply goes by {@code Outbox}
 *       to the event loop, where {@code ServerCall.beforeSend} drops a reply that nobody waits for, and holds one that
 *       has to wait.
 *   <li>Only one final frame is sent: {@code ServerCall.tryEnd} decides between a handler's thread that writes its
 *       reply and an event loop that ends the call otherwise. {@code WriteTurn} asks for this decision by
 *       {@code ServerCall.beforeDirectWrite}, which also adds the call to {@code SentReplies}.
 *   <li>{@code ServerConnection.handled} makes {@code RunningHandlers} stop counting the handler, {@code replied} frees
 *       the slot, and {@code recycle} gives the place back to {@code Admission}. As long as threads that
 *       {@code HandledContext} counts still run for the call, the handler stays counted and the place taken. Then
 *       {@code PostponedCalls} starts calls that wait. If the event loop sends the reply, {@code beforeSend} calls
 *       {@code handled}, and {@code onSent} calls {@code replied} when the last byte of the reply has been handed to
 *       the channel or the socket. If a handler's thread has sent the reply, the event loop does both before it reads
 *       the next frames ({@code SentReplies.endUnseen}).
 * </ol>
 *
 * <p><b>Other ends.</b> A deadline is enforced by {@code ServerConnection.checkDue}. The whole connection has one
 * timer, which calls this method: {@code endIfDue} cancels the handler and answers DEADLINE_EXCEEDED (the interrupt
 * itself is in {@code ServerCall.cancel}, which the client's CANCEL uses too, and a client sends CANCEL at its own
 * deadline); {@code checkDetached} cancels the handler of a notice. On the classic wire,
 * {@code ClassicServerConnection.endLate} enforces the deadline. A call that has waited too long for its thread is
 * refused by {@code ServerSteps.decode}, and {@code RequestReader} cuts a call's time to the server's longest. When a
 * connection is lost, {@code onClosed} cancels all its calls except notices ({@code abandonAll}). A call whose handler
 * goes on running stays charged until the handler ends.
 *
 * <p><b>A server stops</b> by {@code ServerCore.startDrain}, which calls {@code drainConnections}, and so
 * {@code ServedConnection.drain} of each connection. The native wire then sends GOAWAY at once, and still takes
 * requests until it gets the client's own GOAWAY. The classic wire sends a reply with id 0 when its last call has
 * ended. {@code ServerCore} waits for the calls, and cuts off what is still there when the time is over ({@code
 * cutOff}).
 *
 * <p><b>The size of a message</b> is bounded while it arrives: a request by {@code ServerConnection.onPart}, an item of
 * a stream by {@code StreamReceiver.onPart} of {@code call}, a reply at the client by {@code ClientCall.onReplyPart},
 * and a message of the classic wire by {@code ClassicFrames} of {@code wire}.
 *
 * <p><b>Threads.</b> A connection and its calls belong to one event loop; a handler's thread has its {@code ServerCall}
 * from {@code ServerSteps.run} to {@code finish}. {@code ThreadFactories} of {@code io} makes the virtual threads and
 * the threads of the pool; without virtual threads (JDK 17 to 20) all handlers but those on event loops run on the
 * pool.
 */
@NullMarked
package dev.rpcx.internal.server;

import org.jspecify.annotations.NullMarked;

/**
 * Takes a call from a proxy to a connection and brings its reply back: instances, attempts, slots, deadlines.
 *
 * <p>It may use every room before it, from {@code dev.rpcx.schema} to {@code discovery}. It must not know
 * {@code server}, nor the doors: {@code Client} hands in {@link ClientSettings}.
 *
 * <ul>
 *   <li>The client itself: {@code ClientSettings} checks which settings exclude each other; {@link ClientCore} makes
 *       proxies, opens channels, sets timers, and ends all of that. It also compares the methods of proxies with those
 *       that servers list, when there is a proxy or a connection more ({@code logMisfits}), and in {@code warmUp}.
 *   <li>From an interface to a call: {@link ClientProxy} finds the method that is called, and runs the interceptors;
 *       {@link EncodedCaller} does so for {@link EncodedCalls}, by which tools call methods without an interface.
 *       {@link ClientMethod} is what reflection has found of a method. {@link ClientSteps} is the list of the steps
 *       that each call of the method goes through, and decides how the caller waits.
 *   <li>How a caller waits: {@link BlockingCall} blocks the caller's thread. An {@link AsyncCall} blocks no thread: the
 *       event loop tells it of its end. One kind of it, a {@link FutureCall}, completes a future. The other kind is
 *       made by {@link ClientStream}, the publisher that a method returns if its result is a stream: one call for each
 *       subscriber. {@link Hedge} makes a second call beside the first, and the one that is answered first counts.
 *       {@link ClassicMethod} is a method on the classic wire, without retries and hedges.
 *   <li>What is sent and read: {@link RequestWriter} takes a slot and writes the request into it;
 *       {@link BoundPublisher} wraps the stream that a call sends, so that the stream's publisher runs in the context
 *       of the caller; {@link ReplyReader} decodes the result.
 *   <li>Retries: {@link Attempts} decides, for all calls of the native wire, whether there is another attempt, how many
 *       there may be, and which error the caller sees.
 *   <li>Which instance: {@link RouteKey} computes a number from the argument that decides which instance is called;
 *       {@link Route} is where a proxy's calls go, and where they wait for a connection; {@link ClientCluster} has the
 *       instances that {@code discovery} names, and ejects those that fail; {@link Chooser} decides which of them gets
 *       a call, by their load, by their weights, or by a ring on which they share the values of {@code RouteKey};
 *       {@link ClientAddress} is one instance: it decides which of its connections gets a call, and when one more is
 *       made ({@code lessCrowded}, if {@code ClientConnection.isCrowded} says so of the least loaded one).
 *   <li>Connecting: {@link PendingConnection} is what calls wait for; {@link ConnectThrottle} limits the tries to
 *       connect to the instances of a service; {@link Backoff} says how long the pause after failures is;
 *       {@link DrainingConnections} is the list of the connections that only finish their calls, and limits their
 *       number.
 *   <li>A connection and its calls: {@link ClientConnection} decides which thread sends a call, finds calls whose time
 *       is over, and ends all calls when it ends; while it opens, {@link SchemaCheck} asks the server for the members
 *       of methods whose schemas differ, and compares them; {@link CallSlots} gives slots and takes them back;
 *       {@link ClientCall} is one slot: it has the request of a call, its reply and its cancellation, and knows who is
 *       told of its end; {@link OverdueCallers} wakes callers whose event loop is held up;
 *       {@link ClassicClientConnection} does all of this on the classic wire.
 *   <li>What the end of an attempt says: {@link LocalFailure} is an error that this side has made, and says why;
 *       {@link ClientCallErrors} makes the errors with which this side ends calls;
 *       {@link AnswerTimes} knows whether the call had enough time; {@code Health.Outcome.of} decides what counts as a
 *       failure, for {@link Health} and for {@code CircuitBreaker}; {@code Health} judges the instance, and says when
 *       it is ejected and on trial; {@link CircuitBreaker} judges the whole service; {@link RefusalBudget} pays for a
 *       retry of a call that was refused as NOT_FOUND or UNAUTHENTICATED, and {@link RetryBudget} for other retries of
 *       attempts that may have been sent, and for hedges. A retry of an attempt of which no byte was sent costs
 *       nothing. Each {@code Route} has one {@code RetryBudget}, which calls fill; each method has a
 *       {@code RefusalBudget}, which time fills.
 * </ul>
 *
 * <p><b>A blocking call, out.</b> These steps run on the caller's thread. Only connecting, and what steps 5 and 6 say
 * of the event loop, runs on an event loop. The classes are named in the order in which a call passes them;
 * {@code docs/decisions/0023-rooms-have-an-order.md} counts their files.
 *
 * <ol>
 *   <li>{@code ClientProxy.invoke} finds the method; {@code Chain} of {@code call} runs the interceptors, if any.
 *   <li>{@code ClientSteps.call} gets the deadline from {@code TimedContext}. {@code BlockingCall} gets the key that
 *       decides which instance is called from {@code RouteKey}, if an argument selects the instance. By
 *       {@code Route.called}, it gets a permit from {@code CircuitBreaker}, if there is one, and adds a tenth of a
 *       retry to the {@code RetryBudget}.
 *   <li>{@code Route.await} returns a connection of a {@code ClientAddress}. In a {@code ClientCluster}, this is a
 *       connection of the instance that {@code Chooser} picks and {@code Health} allows. If there is no connection, the
 *       caller waits at a {@code PendingConnection}. Of a single address, this is a try to connect, for which
 *       {@code ClientAddress} calls {@code ClientCore.open} when {@code Backoff} allows it; if the pause after a
 *       failure goes on for too long, the call fails at once. In a cluster, calls wait at the cluster, and its
 *       instances connect by themselves, as {@code Backoff} and {@code ConnectThrottle} allow.
 *   <li>{@code RequestWriter} takes a {@code ClientCall} from {@code CallSlots} and writes the request into it: the
 *       method's number, the time that is left, metadata, arguments. A request that is not small is charged, or
 *       refused, by {@code ClientCall.holdRequest}. If this connection does not take the request, another one is tried.
 *       If the instance was ejected, {@code Health.begins} makes the call its trial.
 *   <li>{@code ClientCall.sendBlocking} calls {@code ClientConnection.sendCall}, which decides who sends: the caller
 *       itself, by {@code WireConnection.sendHere} and {@code WriteTurn}, if the request is small, no call is in
 *       flight, and nobody else writes or has something queued; otherwise the event loop, by {@code Outbox}.
 *   <li>{@code ClientCall.beforeDirectWrite} on the caller's thread, or {@code beforeSend} on the event loop, makes
 *       {@code ClientConnection} count the call. The deadline of the call is checked from {@code beforeSend} on, or
 *       from the end of {@code sendCall} on if the caller has sent the call itself. In {@code ClientCall.await}, a
 *       caller that has sent the call itself reads the socket itself, if {@code ReadTurn} has lent it, and if the
 *       caller is no virtual thread and sends no stream. Otherwise {@code OverdueCallers} schedules a check, unless
 *       one is scheduled already, and the caller parks.
 * </ol>
 *
 * <p><b>And back.</b>
 *
 * <ol>
 *   <li>{@code CloseWatch} of {@code io} passes the event of the socket on, {@code WireConnection} cuts a frame on the
 *       event loop, and {@code ClientConnection.onFrame} finds its call by slot and generation. A caller that reads
 *       gets its own reply by {@code ReadTurn} and {@code ClientCall.tryComplete} instead.
 *   <li>{@code ClientCall} takes the reply or the error, and {@code complete} wakes the caller.
 *   <li>The caller, in {@code BlockingCall}, calls {@code ClientSteps.ended}. With the help of {@code AnswerTimes},
 *       this decides what the end of the attempt says of the instance. It passes the outcome to {@code Health}, by
 *       {@code ClientAddress.ended}, which may have the instance ejected.
 *   <li>After an error, the caller gives the slot back, and {@code Attempts.next} decides whether another attempt
 *       follows. This depends on the error, on whether the call may have been executed ({@code RPCXException.executed}
 *       of the error), and on the budgets. If another attempt follows, it begins without a pause: this call in
 *       {@code BlockingCall.awaitSlot}, a call with a future by {@code FutureCall.attemptAgain}, a stream by
 *       {@code ClientStream.Call.sendAgain}; the last two may run on an event loop. If a byte of the failed attempt
 *       has been sent, the next one goes to another instance if one has a connection that is ready
 *       ({@code Route.readyBeside}), and to the one that {@code Route.await} finds if none has.
 *   <li>{@code BlockingCall} passes to {@code CircuitBreaker}, if there is one, how the last attempt has ended, by
 *       {@code Route.recordOutcome}, and at the end gives its permit back by {@code Route.releasePermit}.
 *   <li>{@code ReplyReader} decodes a result, and the caller gives the slot back to {@code CallSlots} by
 *       {@code ClientCall.callerDone}. A slot is free once both the caller is done and the final frame has come. If
 *       there are interceptors, {@code ClientProxy} checks what they have returned.
 * </ol>
 *
 * <p><b>Other ends.</b> A deadline is found by the one timer of {@code ClientConnection}, whose {@code expire} ends the
 * call and sends CANCEL. When a connection is lost, {@code ClientConnection.endCalls} ends each call that is in flight,
 * with {@code lostError} if a byte of it has been sent, and with {@code notSentError} if none has; a call that is still
 * in the outbox ends by {@code ClientCall.onDropped}. {@code Attempts.next} sees these errors as any other. On the
 * classic wire {@code ClassicClientConnection.endAll} ends the calls, and there are no retries.
 *
 * <p><b>Other calls.</b> Asynchronous calls and notices are {@code FutureCall}s. A call whose result is a stream is a
 * {@code ClientStream.Call}. A hedged call is a {@code Hedge} of two {@code FutureCall}s, even if its caller blocks.
 * All of these go the way above from {@code Route.called} on, and ask {@code Attempts} when an attempt has failed.
 *
 * <p><b>Threads.</b> This room starts no thread for a call. An asynchronous call begins on its caller's thread; its
 * reply is decoded, its retries are made and its future is completed on the connection's event loop. The threads of
 * this room are daemons of two kinds: {@code rpcx-overdue} of {@code OverdueCallers}, one for the process, and
 * {@code rpcx-close}, which ends a watch of a client that is closed.
 */
@NullMarked
package dev.rpcx.internal.client;

import org.jspecify.annotations.NullMarked;

package dev.parley.transport.rpcx;

import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A contract as RPCX's users write it: an annotated interface for callers, an annotated class that serves, and which of the interface's
 * methods carries which operation.
 *
 * @param client the interface
 * @param service the class, given what answers
 */
record Binding<C>(Contract contract, Class<C> client, Function<Handler, Object> service, Map<String, Call<C>> calls) {
    private static final Map<String, Binding<?>> ALL = Stream.of(
                    MessagesBinding.BINDING, JsonBinding.BINDING, LecturersBinding.BINDING, RecordsBinding.BINDING)
            .collect(Collectors.toUnmodifiableMap(binding -> binding.contract().name(), UnaryOperator.identity()));

    /** One operation, waited for and not. */
    record Call<C>(
            String operation,
            BiFunction<C, Record, ? extends Record> blocking,
            BiFunction<C, Record, ? extends CompletableFuture<? extends Record>> sending) {}

    /** One operation's two methods. */
    static <C, Q extends Record, R extends Record> Call<C> call(
            Operation<Q, R> operation, BiFunction<C, Q, R> blocking, BiFunction<C, Q, CompletableFuture<R>> sending) {
        Class<Q> type = operation.request();
        return new Call<>(
                operation.name(),
                (client, request) -> blocking.apply(client, type.cast(request)),
                (client, request) -> sending.apply(client, type.cast(request)));
    }

    static <C> Binding<C> of(
            Contract contract, Class<C> client, Function<Handler, Object> service, List<Call<C>> calls) {
        return new Binding<>(
                contract,
                client,
                service,
                calls.stream().collect(Collectors.toUnmodifiableMap(Call::operation, UnaryOperator.identity())));
    }

    static Binding<?> of(Contract contract) {
        Binding<?> binding = ALL.get(contract.name());
        if (binding == null) {
            throw new CallException(
                    CallException.Code.NOT_FOUND,
                    "no RPCX interface for the contract " + contract.name() + " (expected: one of "
                            + ALL.keySet().stream().sorted().toList() + ")");
        }
        return binding;
    }

    Call<C> call(Operation<?, ?> operation) {
        Call<C> call = calls.get(operation.name());
        if (call == null) {
            throw new CallException(
                    CallException.Code.NOT_FOUND, "no operation " + operation.name() + " in " + contract.name());
        }
        return call;
    }

    /** A handler's error in RPCX's own words, for the classes that serve. */
    static <Q extends Record, R extends Record> R answer(Handler handler, Operation<Q, R> operation, Q request) {
        try {
            return handler.handle(operation, request);
        } catch (CallException e) {
            throw Errors.toRpcx(e);
        }
    }
}

package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.json.Json;
import dev.parley.spi.messages.Messages;
import java.util.Map;
import java.util.Optional;

/**
 * A generated message as the SPI's handlers and neighbours pass it on: in a record that holds nothing else, so that
 * nothing is converted. Immutable.
 */
record Own<M extends Message>(M message) {
    /** The contracts whose handlers there are on generated messages, in their records, by name. */
    private static final Map<String, Contract> CARRIED =
            Map.of(Messages.CONTRACT.name(), Messages.CONTRACT, Json.CONTRACT.name(), Json.CONTRACT);

    /** Whether a handler of the contract works on generated messages here. */
    static boolean carries(Contract contract) {
        return CARRIED.containsKey(contract.name());
    }

    /** The same operations on generated messages. */
    static Contract contract(Contract records) {
        return new Contract(
                records.name(),
                records.operations().stream().<Operation<?, ?>>map(Own::own).toList());
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // which message it holds is the operation's, by its name
    private static Operation<?, ?> own(Operation<?, ?> records) {
        return new Operation(records.name(), records.kind(), Own.class, Own.class);
    }

    /** The contract in records that an operation of {@link #contract} stands for; empty for an operation on records. */
    static Optional<Operation<?, ?>> records(String contract, Operation<?, ?> operation) {
        Contract records = CARRIED.get(contract);
        return operation.request() == Own.class && records != null
                ? Optional.of(records.operation(operation.name()))
                : Optional.empty();
    }

    /** Wraps and unwraps what the codec's messages are. */
    @SuppressWarnings("unchecked") // the class of Own is that of every Own
    static <M extends Message> ProtobufCodec<Own<M>, M> codec(ProtobufCodec<?, M> records) {
        return new ProtobufCodec<>((Class<Own<M>>) (Class<?>) Own.class, records.prototype(), Own::message, Own::new);
    }
}

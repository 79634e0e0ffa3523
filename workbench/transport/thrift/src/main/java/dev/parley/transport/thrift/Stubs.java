package dev.parley.transport.thrift;

import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.json.Json;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.records.Records;
import dev.parley.transport.thrift.generated.fault.Fault;
import java.util.Map;
import java.util.Optional;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;

/** What Thrift's compiler made of one contract, spoken to in the contract's records. Immutable. */
interface Stubs {
    /** Empty for a contract without a {@code .thrift} interface. */
    static Optional<Stubs> of(Contract contract) {
        return Optional.ofNullable(Map.<Contract, Stubs>of(
                        Json.CONTRACT, new JsonStubs(),
                        Lecturers.CONTRACT, new LecturersStubs(),
                        Messages.CONTRACT, new MessagesStubs(),
                        Records.CONTRACT, new RecordsStubs())
                .get(contract));
    }

    /** The generated processor, around an implementation of the interface that asks for each answer. */
    TProcessor processor(Answering answering);

    /** The generated client on one connection. */
    Calling client(TProtocol protocol);

    TBase<?, ?> toStruct(Record value);

    interface Answering {
        <Q extends Record, R extends Record> R answer(Operation<Q, R> operation, Q request) throws Fault;
    }

    interface Calling {
        /** @param operation the contract's name of it */
        Record call(String operation, Record request) throws TException;
    }
}

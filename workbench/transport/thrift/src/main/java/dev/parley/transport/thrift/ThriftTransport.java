package dev.parley.transport.thrift;

import dev.parley.model.BadInput;
import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocolFactory;

/**
 * Thrift as its Java tutorial sets it up, with the multi-threaded server that it names. It carries the contract
 * {@code messages} and no other.
 *
 * @param tuned whether messages are in the compact protocol. Source: thrift.apache.org, specification of the compact
 *     protocol
 */
record ThriftTransport(boolean tuned) implements Transport {
    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put(
                "server",
                "TThreadPoolServer (thrift.apache.org/tutorial/java), a thread for each connection, no upper bound");
        settings.put("client", "generated client over TSocket; it carries one call at a time");
        settings.put(
                "connections",
                "as many a neighbour as it has calls under way; kept when idle, all of them dropped after a loss");
        settings.put(
                "protocol",
                tuned
                        ? "TCompactProtocol, unframed: numbers in as few bytes as they take (thrift.apache.org,"
                                + " thrift-compact-protocol.md)"
                        : "TBinaryProtocol, unframed");
        settings.put("serializer", "Thrift's generated structs, converted to and from the service's records");
        settings.put("largest message", "100 MB (TConfiguration's default)");
        settings.put("TCP_NODELAY", "on at both ends (TSocket's default)");
        settings.put("deadline", "socket timeout of what is left of the time, set anew for each read");
        settings.put("errors", "an exception declared in the interface, with code and text");
        return new Technology(
                tuned ? "thrift-tuned" : "thrift",
                tuned ? "Apache Thrift, compact protocol" : "Apache Thrift",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of(
                        "Thrift server with the generated processor",
                        "handler (facade of the business logic)",
                        "generated Thrift client and a pool of connections",
                        ".thrift interface shared by both sides"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    private TProtocolFactory protocol() {
        return tuned ? new TCompactProtocol.Factory() : new TBinaryProtocol.Factory();
    }

    @Override
    public boolean carries(Contract contract) {
        return contract.equals(Messages.CONTRACT);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        mustCarry(contract);
        return new ThriftServing(protocol(), at, handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        mustCarry(contract);
        return new ThriftNeighbour(protocol(), to);
    }

    private void mustCarry(Contract contract) {
        if (!carries(contract)) {
            throw new BadInput(
                    "contract over thrift", contract.name(), "messages, the one that has a .thrift interface");
        }
    }
}

package dev.parley.service;

import dev.parley.protocol.Protocol;
import dev.parley.protocol.ServiceEvent;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/** Prints what the technologies on this class path say of themselves, a {@link ServiceEvent.Described} each. */
final class Describe {
    private Describe() {}

    static void to(PrintStream out) {
        for (TransportProvider provider : ServiceLoader.load(TransportProvider.class)) {
            for (Transport transport : provider.transports()) {
                List<String> cannot = new ArrayList<>();
                for (Work work : ServiceLoader.load(Work.class)) {
                    if (!transport.carries(work.contract())) {
                        cannot.add(work.name());
                    }
                }
                out.println(Protocol.line(new ServiceEvent.Described(transport.technology(), cannot)));
            }
        }
    }
}

package dev.parley.transport.thrift;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class ThriftTunedContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new ThriftTransport(true);
    }
}

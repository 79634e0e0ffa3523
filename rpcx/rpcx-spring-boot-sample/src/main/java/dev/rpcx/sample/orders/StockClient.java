package dev.rpcx.sample.orders;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;

/** Client of the stock service, whose address is given by {@code rpcx.services.stock}. */
@RPCXClient(remoteServerName = "stock")
public interface StockClient {
    @Method
    int take(String article, int count);
}

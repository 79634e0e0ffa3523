package dev.rpcx.spring;

import dev.rpcx.RPCXClient;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ObjectProvider;

/**
 * Proxy of an {@link RPCXClient} interface as a bean. It is given by arguments of a constructor, which Spring takes
 * where it generates code ahead of time.
 *
 * @param type the interface
 */
record ClientProxy<T>(Class<T> type, ObjectProvider<RPCXClients> clients) implements FactoryBean<T> {
    @Override
    public T getObject() {
        return clients.getObject().create(type);
    }

    @Override
    public Class<T> getObjectType() {
        return type;
    }
}

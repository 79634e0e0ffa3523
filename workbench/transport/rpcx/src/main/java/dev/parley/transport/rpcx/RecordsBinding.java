package dev.parley.transport.rpcx;

import static dev.parley.transport.rpcx.Binding.call;

import dev.parley.spi.Handler;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The contract {@code records}. */
final class RecordsBinding {
    static final Binding<Client> BINDING = Binding.of(
            Records.CONTRACT,
            Client.class,
            Service::new,
            List.of(
                    call(Records.ALL, Client::all, Client::sendAll),
                    call(Records.ADD, Client::add, Client::sendAdd),
                    call(Records.EDIT, Client::edit, Client::sendEdit),
                    call(Records.DELETE, Client::delete, Client::sendDelete),
                    call(Records.UPLOAD, Client::upload, Client::sendUpload),
                    call(Records.DOWNLOAD, Client::download, Client::sendDownload)));

    private RecordsBinding() {}

    /** As a caller sees it, blocking and not. */
    @RPCXClient(remoteServerName = "records")
    interface Client {
        @Method
        Entries all(Nothing request);

        @Method
        Entry add(Entry request);

        @Method
        Entry edit(Entry request);

        @Method
        EntryId delete(EntryId request);

        @Method
        StoredPhoto upload(Photo request);

        @Method
        Photo download(PhotoName request);

        @Method("all")
        CompletableFuture<Entries> sendAll(Nothing request);

        @Method("add")
        CompletableFuture<Entry> sendAdd(Entry request);

        @Method("edit")
        CompletableFuture<Entry> sendEdit(Entry request);

        @Method("delete")
        CompletableFuture<EntryId> sendDelete(EntryId request);

        @Method("upload")
        CompletableFuture<StoredPhoto> sendUpload(Photo request);

        @Method("download")
        CompletableFuture<Photo> sendDownload(PhotoName request);
    }

    /** As it is served. */
    @RPCXServer("records")
    static final class Service {
        private final Handler handler;

        Service(Handler handler) {
            this.handler = handler;
        }

        @Method
        Entries all(Nothing request) {
            return Binding.answer(handler, Records.ALL, request);
        }

        @Method
        Entry add(Entry request) {
            return Binding.answer(handler, Records.ADD, request);
        }

        @Method
        Entry edit(Entry request) {
            return Binding.answer(handler, Records.EDIT, request);
        }

        @Method
        EntryId delete(EntryId request) {
            return Binding.answer(handler, Records.DELETE, request);
        }

        @Method
        StoredPhoto upload(Photo request) {
            return Binding.answer(handler, Records.UPLOAD, request);
        }

        @Method
        Photo download(PhotoName request) {
            return Binding.answer(handler, Records.DOWNLOAD, request);
        }
    }
}

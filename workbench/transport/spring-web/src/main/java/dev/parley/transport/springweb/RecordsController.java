package dev.parley.transport.springweb;

import dev.parley.spi.Handler;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The contract {@code records} as routes. A photo is the body itself, its name a parameter or a header beside it. */
@RestController
@RequestMapping("/records")
class RecordsController {
    private final Handler handler;

    RecordsController(Handler handler) {
        this.handler = handler;
    }

    @GetMapping("/all")
    Entries all() {
        return handler.handle(Records.ALL, new Nothing());
    }

    @PostMapping("/add")
    Entry add(@RequestBody Entry request) {
        return handler.handle(Records.ADD, request);
    }

    @PostMapping("/edit")
    Entry edit(@RequestBody Entry request) {
        return handler.handle(Records.EDIT, request);
    }

    @PostMapping("/delete")
    EntryId delete(@RequestBody EntryId request) {
        return handler.handle(Records.DELETE, request);
    }

    @PostMapping(path = "/upload", consumes = MediaType.APPLICATION_OCTET_STREAM_VALUE)
    StoredPhoto upload(
            @RequestParam String name,
            @RequestBody(required = false) byte @org.jspecify.annotations.Nullable [] content) {
        return handler.handle(Records.UPLOAD, new Photo(name, content == null ? new byte[0] : content));
    }

    @PostMapping("/download")
    ResponseEntity<byte[]> download(@RequestBody PhotoName request) {
        Photo photo = handler.handle(Records.DOWNLOAD, request);
        return ResponseEntity.ok()
                .contentType(MediaType.APPLICATION_OCTET_STREAM)
                .header(Photos.NAME, Photos.written(photo.name()))
                .body(photo.content());
    }
}
